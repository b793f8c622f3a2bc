# Summarizes a timing data sheet: read_sheet.tcl ?FILE?
package require hairspring

set path [expr {$argc > 0 ? [lindex $argv 0] : "sheets/historic/fermilab-2007.json"}]
set sheet [hairspring read_sheet $path]
foreach key {host chapters rows absent} {
    puts "$key [dict get [$sheet contents] $key]"
}
