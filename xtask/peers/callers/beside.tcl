# Ours beside Tcl's own, in turns: beside.tcl BLOCKS DELAYS prints one JSON object, as beside.py does. The time around a delay is the time
# base's, for Tcl's own clock counts microseconds.
package require hairspring

proc block {timebase call} {
    set loop {for {set n 0} {$n < 100} {incr n} {BODY}}
    apply [list {timebase} "set before \[\$timebase now_ns\]
        [string map [list BODY [string repeat "$call\n" 10]] $loop]
        set between \[\$timebase now_ns\]
        [string map [list BODY {}] $loop]
        expr {(2 * \$between - \$before - \[\$timebase now_ns\]) / 1000.0}"] $timebase
}

# How late it is as the caller sees it, and what it returns.
proc late {timebase long call} {
    apply [list {timebase long} "set before \[\$timebase now_ns\]
        set report \[$call\]
        set after \[\$timebase now_ns\]
        list \[expr {\$after - \$before - 10000000}\] \$report"] $timebase $long
}

proc nothing {} {}

proc empty_call {timebase} {
    set before [$timebase now_ns]
    nothing
    expr {[$timebase now_ns] - $before}
}

lassign $argv blocks delays
set timebase [hairspring calibrate]
set long [hairspring long_delay $timebase]
set tuned [hairspring long_delay $timebase]
$tuned tune 10000000
for {set n 0} {$n < $blocks} {incr n} {
    lappend now [block $timebase {$timebase now_ns}]
    lappend clock [block $timebase {clock microseconds}]
}
for {set n 0} {$n < $delays} {incr n} {
    lassign [late $timebase $long {$long delay_ns 10000000}] late report
    lappend longs $late
    lappend tolds [dict get $report late_ns]
    lappend tuneds [lindex [late $timebase $tuned {$long delay_ns 10000000}] 0]
    lappend sleeps [lindex [late $timebase $long {after 10}] 0]
    after 10
    lappend empties [empty_call $timebase]
    after 10
}
foreach {name samples} [list now $now clock $clock told $tolds long $longs tuned $tuneds empty $empties sleep $sleeps] {
    lappend members "\"$name\":\[[join $samples ,]\]"
}
puts "{[join $members ,]}"
