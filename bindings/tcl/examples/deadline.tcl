# Works for a time nobody knows beforehand, and is done at a fixed one.
package require hairspring

proc work {} {
    set sum 0.0
    for {set term 1} {$term <= 10000} {incr term} {
        set sum [expr {$sum + 1.0 / $term}]
    }
    return $sum
}

set timebase [hairspring calibrate]
set start [$timebase now]
lassign $start start_ns epoch
set deadline [list [expr {$start_ns + 20000000}] $epoch]
work
set done [$timebase now]
set report [$timebase delay_until $deadline]
puts "worked_ns [hairspring difference_ns $done $start]"
puts "left_ns [hairspring difference_ns $deadline $done]"
puts "late_ns [dict get $report late_ns]"
