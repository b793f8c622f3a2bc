# A loop with a period of 2 ms: absolute deadlines do not add up their lateness.
package require hairspring

proc run {cycles period_ns} {
    set timebase [hairspring calibrate]
    set long_delay [hairspring long_delay $timebase]
    lassign [$timebase now] start_ns epoch
    set missed 0
    for {set cycle 1} {$cycle <= $cycles} {incr cycle} {
        set report [$long_delay delay_until [list [expr {$start_ns + $cycle * $period_ns}] $epoch]]
        lappend late_ns [dict get $report late_ns]
        # A deadline that had passed before the wait began was missed.
        incr missed [expr {[dict get $report slept_ns] + [dict get $report polled_ns] == 0}]
    }
    set late_ns [lsort -integer $late_ns]
    puts "cycles $cycles"
    puts "period_ns $period_ns"
    puts "least_late_ns [lindex $late_ns 0]"
    puts "median_late_ns [lindex $late_ns [expr {$cycles / 2}]]"
    puts "most_late_ns [lindex $late_ns end]"
    puts "missed $missed"
}

run 50 2000000
