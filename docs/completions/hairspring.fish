# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_hairspring_global_optspecs
    string join \n h/help V/version
end

function __fish_hairspring_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_hairspring_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_hairspring_using_subcommand
    set -l cmd (__fish_hairspring_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c hairspring -n "__fish_hairspring_needs_command" -s h -l help -d 'Print help'
complete -c hairspring -n "__fish_hairspring_needs_command" -s V -l version -d 'Print version'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "sheet" -d 'Measure this computer and print its timing data sheet'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "delay" -d 'Perform delays and show how late they returned'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "clock" -d 'Print the calibration of the counter and whether it can be trusted'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "trace" -d 'Run an example on the executive and show who ran and who waited when'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "compare" -d 'Compare sheets: what differs in the conditions, then ratios with intervals'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "probes" -d 'List every probe: what it measures, its unit, its method'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "schema" -d 'Print the JSON Schema of a sheet'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "exit-codes" -d 'Print the table of exit codes'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "completions" -d 'Print completions for a shell'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "man" -d 'Print the man page'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l only -d 'Measure only the rows under these ids, for instance clocks.read,delays.minimum.fifo' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l cpu -d 'The CPU to measure on [default: the last one that may be used]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l priority -d 'The priority for measurements under SCHED_FIFO, 1 to 99' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l format -d 'The format [default: by the ending of --out, else text]' -r -f -a "text\t'For a terminal'
md\t'Markdown'
json\t'For programs: hairspring.sheet/1'
html\t'One self-contained page with plots'"
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l out -d 'Write to this file instead of the standard output' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l beside -d 'Compare with another sheet: a JSON file, or the name of a historic one (fermilab-2007, fermilab-bit3, amx86-486sx, amx86-net186, amx86-turbo186, freertos-threadx-linux, an006-bus, an006-continuous, an006-reference-1, an006-reference-2, an006-reference-3)' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l quick -d 'Take a quarter of the time'
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l thorough -d 'Take the time that it takes (about ten minutes), with the long requests'
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l redact -d 'Leave out host name, paths, process names and command lines'
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l verbose -d 'In text, show every fact and the id of every row; in a comparison, every row'
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand delay" -l count -d 'How many delays [default: as many as fit into two seconds, at most 10000]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand delay" -l priority -d 'Run under SCHED_FIFO with this priority, 1 to 99' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand delay" -l cpu -d 'Stay on this CPU' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand delay" -l format -d 'The format' -r -f -a "text\t'For people'
json\t'For programs'"
complete -c hairspring -n "__fish_hairspring_using_subcommand delay" -l long -d 'Sleep first and poll only the end; needed above 100 ms'
complete -c hairspring -n "__fish_hairspring_using_subcommand delay" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand clock" -l age -d 'How long to let the calibration age before it is printed' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand clock" -l format -d 'The format' -r -f -a "text\t'For people'
json\t'For programs'"
complete -c hairspring -n "__fish_hairspring_using_subcommand clock" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand trace" -l backend -d 'What runs its tasks' -r -f -a "sim\t'Virtual time: the same in every run'
fiber\t'Fibers on one thread; they switch at calls'
thread-up\t'Threads on one CPU; strict priority where real-time priority is granted'
thread-smp\t'Threads on all CPUs'"
complete -c hairspring -n "__fish_hairspring_using_subcommand trace" -l out -d 'Write the trace to this file, as a value change dump (.vcd) or as trace events (.json) [default: a table on the standard output]' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand trace" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand compare" -l fail-if -d 'Fail with exit code 6 if a ratio of medians is beyond a limit, for instance \'clocks.read.now.later>1.2\'' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand compare" -l verbose -d 'List the rows with no difference and those that are absent, too'
complete -c hairspring -n "__fish_hairspring_using_subcommand compare" -s h -l help -d 'Print help'
complete -c hairspring -n "__fish_hairspring_using_subcommand probes" -l format -d 'The format' -r -f -a "text\t'For people'
md\t'Markdown'
json\t'For programs'"
complete -c hairspring -n "__fish_hairspring_using_subcommand probes" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand schema" -s h -l help -d 'Print help'
complete -c hairspring -n "__fish_hairspring_using_subcommand exit-codes" -s h -l help -d 'Print help'
complete -c hairspring -n "__fish_hairspring_using_subcommand completions" -s h -l help -d 'Print help'
complete -c hairspring -n "__fish_hairspring_using_subcommand man" -s h -l help -d 'Print help'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace compare probes schema exit-codes completions man help" -f -a "sheet" -d 'Measure this computer and print its timing data sheet'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace compare probes schema exit-codes completions man help" -f -a "delay" -d 'Perform delays and show how late they returned'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace compare probes schema exit-codes completions man help" -f -a "clock" -d 'Print the calibration of the counter and whether it can be trusted'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace compare probes schema exit-codes completions man help" -f -a "trace" -d 'Run an example on the executive and show who ran and who waited when'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace compare probes schema exit-codes completions man help" -f -a "compare" -d 'Compare sheets: what differs in the conditions, then ratios with intervals'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace compare probes schema exit-codes completions man help" -f -a "probes" -d 'List every probe: what it measures, its unit, its method'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace compare probes schema exit-codes completions man help" -f -a "schema" -d 'Print the JSON Schema of a sheet'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace compare probes schema exit-codes completions man help" -f -a "exit-codes" -d 'Print the table of exit codes'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace compare probes schema exit-codes completions man help" -f -a "completions" -d 'Print completions for a shell'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace compare probes schema exit-codes completions man help" -f -a "man" -d 'Print the man page'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace compare probes schema exit-codes completions man help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
