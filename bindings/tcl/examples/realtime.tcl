# Asks for a real-time policy and locked memory, and prints what the system granted.
package require hairspring

set settings [hairspring real_time -policy fifo -priority 50 -lock_memory yes]
set grants [$settings grants]
set fifo [expr {[dict get $grants policy] eq "granted"}]
set locked [expr {[dict get $grants lock_memory] eq "granted"}]
puts "policy [expr {$fifo ? "fifo" : "other"}]"
puts "priority [expr {$fifo ? 50 : 0}]"
puts "memory_locked [expr {$locked ? "yes" : "no"}]"
puts "granted [lindex {none some all} [expr {$fifo + $locked}]]"
if {[dict exists $grants refusal]} {
    puts stderr [dict get $grants refusal]
}
$settings destroy ;# and back to what was before
