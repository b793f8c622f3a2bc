# Calibrates the counter, and prints how far to trust it.
package require hairspring

set timebase [hairspring calibrate -bound_ppm 1] ;# some 100 ms
set calibration [$timebase calibration]
puts "frequency_hz [format %.0f [dict get $calibration frequency_hz]]"
puts "bound_ppm [format %.3f [dict get $calibration bound_ppm]]"
puts "trust [dict get [$timebase trust] text]"
