# A command every 10 ms, from the event loop. Missed periods are counted and not made up; planned times do not drift.
package require hairspring

proc measure {planned_ns late_ns missed} {
    lappend ::late_ns $late_ns
    incr ::missed $missed
    if {[llength $::late_ns] == 50} {
        $::timer destroy
        set ::over yes
    }
}

set missed 0
set timer [hairspring timer [hairspring calibrate] 10000000 measure -repeat yes]
vwait over
set late_ns [lsort -integer $late_ns]
puts "calls [llength $late_ns]"
puts "least_late_ns [lindex $late_ns 0]"
puts "median_late_ns [lindex $late_ns 25]"
puts "most_late_ns [lindex $late_ns end]"
puts "missed $missed"
