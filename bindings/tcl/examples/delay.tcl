# Waits at least 50 us by polling, and prints how late it was and what disturbed it.
package require hairspring

set timebase [hairspring calibrate]
set report [$timebase delay_us 50]
dict with report {
    puts "asked_ns $requested_ns"
    puts "actual_ns $actual_ns"
    puts "late_ns $late_ns"
    puts "verdict $verdict"
}
