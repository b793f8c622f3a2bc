# Waits 100 ms, asleep for all but the last stretch.
package require hairspring

set timebase [hairspring calibrate]
set long_delay [hairspring long_delay $timebase] ;# learns how late the kernel wakes this thread
set report [$long_delay delay_ns 100000000]
dict with report {
    puts "asked_ns $requested_ns"
    puts "actual_ns $actual_ns"
    puts "slept_ns $slept_ns"
    puts "polled_ns $polled_ns"
    puts "late_ns $late_ns"
    puts "verdict $verdict"
}
