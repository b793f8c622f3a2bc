# An exposure of 100 ms with a reading of the light in its middle, whose time is taken from the rest.
package require hairspring

# Stands for the shutter: a line of a parallel port, a socket.
proc shutter {open} {
    set ::line $open
}

# Stands for the instrument that reads the light, which answers after a time nobody knows beforehand.
proc read_light {timebase} {
    $timebase delay_us 3000
}

proc expose {exposure_ns} {
    set timebase [hairspring calibrate]
    set long_delay [hairspring long_delay $timebase]
    set profile [hairspring profile $timebase]

    shutter 1
    set opened [$timebase now]
    lassign $opened opened_ns epoch
    set end [list [expr {$opened_ns + $exposure_ns}] $epoch]
    $long_delay delay_ns [expr {$exposure_ns / 2}]
    $profile start
    read_light $timebase
    set reading_ns [$profile stop]
    set rest_ns [hairspring difference_ns $end [$timebase now]]
    set report [$long_delay delay_until $end]
    set closed [$timebase now]
    shutter 0

    set measured_ns [hairspring difference_ns $closed $opened]
    puts "asked_ns $exposure_ns"
    puts "measured_exp_time_ns $measured_ns"
    puts "reading_ns $reading_ns"
    puts "rest_ns $rest_ns"
    puts "late_ns [expr {$measured_ns - $exposure_ns}]"
    puts "verdict [dict get $report verdict]"
}

expose 100000000
