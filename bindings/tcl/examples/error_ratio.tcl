# Relative error of delays from 1 us to 10 ms, in percent.
package require hairspring

set timebase [hairspring calibrate]
foreach {name request_ns} {1us 1000 10us 10000 100us 100000 1ms 1000000 10ms 10000000} {
    set late_ns {}
    for {set call 0} {$call < 21} {incr call} {
        lappend late_ns [dict get [$timebase delay_ns $request_ns] late_ns]
    }
    set median_ns [lindex [lsort -integer $late_ns] 10]
    puts "error_at_${name}_percent [format %.6f [expr {100.0 * $median_ns / $request_ns}]]"
}
