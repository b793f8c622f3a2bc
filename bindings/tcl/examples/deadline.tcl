# Works, then waits for the rest until a deadline 5 ms after the start.
package require hairspring

proc work {} {
    set sum 0.0
    for {set term 1} {$term <= 10000} {incr term} {
        set sum [expr {$sum + 1.0 / $term}]
    }
    return $sum
}

set timebase [hairspring calibrate]
set long_delay [hairspring long_delay $timebase]
set start [$timebase now]
lassign $start start_ns epoch
set deadline [list [expr {$start_ns + 5000000}] $epoch]
work
set done [$timebase now]
set report [$long_delay delay_until $deadline]
puts "worked_ns [hairspring difference_ns $done $start]"
puts "left_ns [hairspring difference_ns $deadline $done]"
puts "late_ns [dict get $report late_ns]"
