# Opens a shutter for 100 ms, reads a light meter in the middle, and waits exactly for the rest.
#
# The meter takes 20 ms. All printed times except the first are elapsed times. The shutter closes even after an error.
package require hairspring

# The shutter: in reality a line of a parallel port, or a socket.
proc shutter {open} {
    set ::line $open
}

# The instrument that reads the light, which answers after an unknown time.
proc read_light {} {
    after 20
}

proc expose {exposure_ns} {
    set timebase [hairspring calibrate]
    set long_delay [hairspring long_delay $timebase]

    shutter 1
    try {
        set opened [$timebase now]
        lassign $opened opened_ns epoch
        $long_delay delay_until [list [expr {$opened_ns + $exposure_ns / 2}] $epoch]
        set from [$timebase now]
        read_light
        set to [$timebase now]
        set report [$long_delay delay_until [list [expr {$opened_ns + $exposure_ns}] $epoch]]
        set over [$timebase now]
    } finally {
        shutter 0
    }

    set measured_ns [hairspring difference_ns $over $opened]
    puts "asked_ns $exposure_ns"
    puts "measured_exp_time_ns $measured_ns"
    puts "first_half_ns [hairspring difference_ns $from $opened]"
    puts "reading_ns [hairspring difference_ns $to $from]"
    puts "rest_ns [hairspring difference_ns $over $to]"
    puts "late_ns [expr {$measured_ns - $exposure_ns}]"
    puts "verdict [dict get $report verdict]"
}

expose 100000000
