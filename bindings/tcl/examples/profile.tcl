# How long a procedure takes, call by call.
package require hairspring

proc function {} {
    set sum 0.0
    for {set term 1} {$term <= 100} {incr term} {
        set sum [expr {$sum + 1.0 / $term}]
    }
    return $sum
}

set timebase [hairspring calibrate]
set profile [hairspring profile $timebase]
for {set call 0} {$call < 1000} {incr call} {
    $profile run function
}
set summary [$profile summary]
dict with summary {
    puts "calls $count"
    puts "min_ns $min_ns"
    puts "median_ns $median_ns"
    puts "max_ns $max_ns"
}
