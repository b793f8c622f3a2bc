# Measures the cost of calls from Tcl: callers.tcl FILE CALLS
#
# FILE (4 bytes or more) is mapped, and its first word read and written. CALLS is the total number of calls of each kind.
#
# Prints one JSON object, as callers.c does. `first_ns` is the first call of its kind in this process, inside a span of a profile.
# It includes the cost of the span's two calls: `stamp_ns`, the median of an empty span. `later_ns` are samples. For `now`,
# `word_read` and `word_write` a sample is a block of calls, ten in each round of a compiled loop, between two stamps and divided
# by their number (`block`). For `delay_1us` it is one call between two stamps. No overhead is subtracted.
package require hairspring

if {$argc != 2 || ![string is integer -strict [lindex $argv 1]] || [lindex $argv 1] <= 0} {
    puts stderr "usage: callers.tcl FILE CALLS"
    exit 2
}
lassign $argv path calls

# Makes a procedure that does one kind of call `number` times between two stamps and returns the nanoseconds of one call.
proc measuring {name number call} {
    if {$number == 1} {
        set body "set before \[\$timebase now_ns\]\n$call\n"
    } else {
        set round [string repeat "$call\n" 10]
        set body "set before \[\$timebase now_ns\]\nfor {set n 0} {\$n < [expr {$number / 10}]} {incr n} {\n$round}\n"
    }
    append body "expr {(\[\$timebase now_ns\] - \$before) / $number.0}"
    proc $name {timebase window} $body
}

proc measure {name number call calls} {
    global timebase window profile
    proc first {timebase window} $call
    $profile start
    first $timebase $window
    set first_ns [$profile stop]
    measuring later $number $call
    set samples {}
    for {set sample 0} {$sample < max(1, $calls / $number)} {incr sample} {
        lappend samples [format %.2f [later $timebase $window]]
    }
    puts -nonewline ",\"$name\":{\"block\":$number,\"first_ns\":$first_ns,\"later_ns\":\[[join $samples ,]\]}"
}

set timebase [hairspring calibrate]
set window [hairspring window $path -writable yes]
set profile [hairspring profile $timebase]
for {set pair 0} {$pair < 101} {incr pair} {
    $profile start
    lappend pairs [$profile stop]
}
puts -nonewline "{\"language\":\"tcl\",\"stamp_ns\":[lindex [lsort -integer $pairs] 50]"
measure now 100 {$timebase now_ns} $calls
measure delay_1us 1 {$timebase delay_ns 1000} $calls
measure word_read 100 {$window read 0} $calls
measure word_write 100 {$window write 4096 1515870810} $calls
puts "}"
