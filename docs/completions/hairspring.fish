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

complete -c hairspring -n "__fish_hairspring_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_needs_command" -s V -l version -d 'Print version'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "round" -d 'Measure one round of a sheet; `sheet` starts it'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "chain" -d 'Run as a process of the chapter Reaction; `sheet` starts it'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "turn" -d 'Do a job under the settings of this process; `doctor` starts it'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "load" -d 'Produce load beside a soak; `soak` starts it'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "caller" -d 'Make the calls of the chapter Callers from Rust; `sheet` starts it'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "sheet" -d 'Measure this computer and print its timing data sheet'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "compare" -d 'Compare sheets: what differs, and what cannot be decided'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "archive" -d 'Keep sheets for years, and show what changed'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "ab" -d 'Measure two builds in turns and say what differs'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "delay" -d 'Make delays and show how late each returned'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "clock" -d 'Calibrate the processor\'s counter and say whether to trust it'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "can" -d 'Say whether this computer can do a job: yes, no or not shown'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "soak" -d 'Watch a job for hours, under a load, and keep the result'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "doctor" -d 'Try the settings that could make a job better here'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "watch" -d 'Say who delays the threads of a program'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "plan" -d 'Say whether a set-up can carry a recording, and what limits it'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "maxrate" -d 'Find the highest rate at which this machine loses no data'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "record" -d 'Record cards to disk, and account for every byte'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "verify" -d 'Check every byte of a recording against its checksums'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "play" -d 'Play a recording, at its own rate or as fast as possible'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "export" -d 'Export a recording for other programs: HDF5, NumPy, CSV'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "recover" -d 'Repair a recording after a crash, a power cut or damage'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "join" -d 'Join the parts of a stripe or the segments of a series'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "keep" -d 'Keep segments of a series from being deleted, or release them'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "compress" -d 'Compress closed recordings without loss, or restore them'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "pulse" -d 'Make pulses on a line of a device, never shorter than requested'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "expose" -d 'Open a shutter for an exact time, and read an instrument'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "scope" -d 'Watch the lines of a virtual board, or a recording that runs'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "serve" -d 'Run a front end that a station file describes'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "trace" -d 'Run an example on the executive and show who ran when'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "top" -d 'Watch the tasks of a running executive'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "run" -d 'Run a program under settings that improve its timing'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "settings" -d 'List settings that affect timing, with their present values'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "restore" -d 'Restore settings that a killed command left changed'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "probes" -d 'List every row that a sheet can have'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "schema" -d 'Print the JSON Schema of a sheet or a comparison'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "exit-codes" -d 'Print the table of exit codes'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "completions" -d 'Print completions for a shell'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "man" -d 'Print the manual page of a command, or write all of them'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c hairspring -n "__fish_hairspring_using_subcommand round" -s h -l help -d 'Print help'
complete -c hairspring -n "__fish_hairspring_using_subcommand chain" -s h -l help -d 'Print help'
complete -c hairspring -n "__fish_hairspring_using_subcommand turn" -s h -l help -d 'Print help'
complete -c hairspring -n "__fish_hairspring_using_subcommand load" -s h -l help -d 'Print help'
complete -c hairspring -n "__fish_hairspring_using_subcommand caller" -l first -d 'Make nothing but the first call to this clock' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand caller" -s h -l help -d 'Print help'
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l only -d 'Measure only rows whose ids begin with this, for instance clocks.read,delays.minimum.fifo' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l cpu -d 'CPU to measure on [default: the last one that this process may use]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l priority -d 'Priority of the measured threads under SCHED_FIFO, 1 to 99' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l format -d 'Format [default: by the ending of --out, otherwise text]' -r -f -a "text\t'Plain text for a terminal'
md\t'Markdown'
json\t'JSON, as `hairspring schema` describes it'
html\t'One self-contained page with plots'"
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l out -d 'Write to this file instead of the standard output' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l beside -d 'Print a comparison with another sheet below the text: a JSON file, or a historic sheet by its name (fermilab-2007, fermilab-bit3, amx86-486sx, amx86-net186, amx86-turbo186, freertos-threadx-linux, an006-bus, an006-continuous, an006-reference-1, an006-reference-2, an006-reference-3, fesa-2007)' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l archive -d 'Add the sheet to this archive, too [default: that of `hairspring archive`]' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l dir -d 'Measure the disk under this folder, too, by writing to it. May be repeated' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l volume -d 'Most data to write to all folders together [default: 16GiB, with --quick 4GiB, with --thorough 128GiB]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l chapter -d 'In text, show this chapter, named as by `hairspring probes`. May be repeated' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l quick -d 'Take less than half of the usual time'
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l thorough -d 'Run everything, including the 10 s and 60 s requests (about ten minutes)'
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l redact -d 'Leave out host name, paths, process names and command lines'
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l full -d 'Show every chapter; on HTML pages, unfold them'
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l verbose -d 'In text, show every fact and the id of every row; in a comparison, show every row'
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l one-process -d 'Take all rounds in this process, to learn how much fresh processes vary'
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand compare" -l fail-if -d 'Fail if a ratio of medians is beyond a limit with 95 %, for instance \'clocks.read.now.later>1.2\'; may be repeated' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand compare" -l only -d 'Only these rows: ids, beginnings of ids up to a dot, or beginnings with a * at the end; separated by commas' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand compare" -l margin -d 'Changes below this are the same' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand compare" -l ledger -d 'A folder of five or more sheets of one build on this machine, which say how much its sheets vary; or an archive' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand compare" -l drift -d 'Show when the figures of the sheets in this folder changed for good, instead of comparing sides' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand compare" -l format -d 'Format [default: by the ending of --out, otherwise text]' -r -f -a "text\t'Plain text for a terminal'
md\t'Markdown'
json\t'JSON, as `hairspring schema` describes it'
html\t'One self-contained page with plots'"
complete -c hairspring -n "__fish_hairspring_using_subcommand compare" -l out -d 'Write to this file instead of the standard output' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand compare" -l strict -d 'Fail if a limit cannot be decided'
complete -c hairspring -n "__fish_hairspring_using_subcommand compare" -l lenient -d 'Pass if a limit cannot be decided, with a line that says so'
complete -c hairspring -n "__fish_hairspring_using_subcommand compare" -l verbose -d 'In text, list every row'
complete -c hairspring -n "__fish_hairspring_using_subcommand compare" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and not __fish_seen_subcommand_from add list show trend compare export html prune rebuild help" -l archive -d 'The archive [default: ~/.local/share/hairspring/sheets.db]' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and not __fish_seen_subcommand_from add list show trend compare export html prune rebuild help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and not __fish_seen_subcommand_from add list show trend compare export html prune rebuild help" -f -a "add" -d 'Add sheets; one that is there already is left alone'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and not __fish_seen_subcommand_from add list show trend compare export html prune rebuild help" -f -a "list" -d 'List the sheets, the oldest first'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and not __fish_seen_subcommand_from add list show trend compare export html prune rebuild help" -f -a "show" -d 'Show one sheet'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and not __fish_seen_subcommand_from add list show trend compare export html prune rebuild help" -f -a "trend" -d 'Show figures over months: what changed them, and what cannot be told yet'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and not __fish_seen_subcommand_from add list show trend compare export html prune rebuild help" -f -a "compare" -d 'Compare sheets; the archive says how much sheets of the machine vary'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and not __fish_seen_subcommand_from add list show trend compare export html prune rebuild help" -f -a "export" -d 'Write all figures as Parquet files into a new folder'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and not __fish_seen_subcommand_from add list show trend compare export html prune rebuild help" -f -a "html" -d 'Write a static site: machines × figures as small plots, each linked to its sheets'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and not __fish_seen_subcommand_from add list show trend compare export html prune rebuild help" -f -a "prune" -d 'Remove sheets; without --yes only say which'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and not __fish_seen_subcommand_from add list show trend compare export html prune rebuild help" -f -a "rebuild" -d 'Make the tables again from the stored sheets'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and not __fish_seen_subcommand_from add list show trend compare export html prune rebuild help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from add" -l archive -d 'The archive [default: ~/.local/share/hairspring/sheets.db]' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from add" -s h -l help -d 'Print help'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from list" -l machine -d 'Only sheets of this machine: its name, or the beginning of its id' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from list" -l format -d 'Format' -r -f -a "text\t''
json\t''"
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from list" -l archive -d 'The archive [default: ~/.local/share/hairspring/sheets.db]' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from show" -l format -d 'Format [default: by the ending of --out, otherwise text]' -r -f -a "text\t'Plain text for a terminal'
md\t'Markdown'
json\t'JSON, as `hairspring schema` describes it'
html\t'One self-contained page with plots'"
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from show" -l out -d 'Write to this file instead of the standard output' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from show" -l archive -d 'The archive [default: ~/.local/share/hairspring/sheets.db]' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from trend" -l machine -d 'The machine: its name, or the beginning of its id [default: the only one]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from trend" -l effort -d 'Sheets of this effort [default: that of most sheets]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from trend" -l format -d 'Format [default: by the ending of --out, otherwise text]' -r -f -a "text\t'Plain text for a terminal'
md\t'Markdown'
json\t'JSON, as `hairspring schema` describes it'
html\t'One self-contained page with plots'"
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from trend" -l out -d 'Write to this file instead of the standard output' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from trend" -l archive -d 'The archive [default: ~/.local/share/hairspring/sheets.db]' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from trend" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from compare" -l only -d 'Only these rows: ids, beginnings of ids up to a dot, or beginnings with a * at the end; separated by commas' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from compare" -l margin -d 'Changes below this are the same' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from compare" -l format -d 'Format [default: by the ending of --out, otherwise text]' -r -f -a "text\t'Plain text for a terminal'
md\t'Markdown'
json\t'JSON, as `hairspring schema` describes it'
html\t'One self-contained page with plots'"
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from compare" -l out -d 'Write to this file instead of the standard output' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from compare" -l archive -d 'The archive [default: ~/.local/share/hairspring/sheets.db]' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from compare" -l verbose -d 'In text, list every row'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from compare" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from export" -l archive -d 'The archive [default: ~/.local/share/hairspring/sheets.db]' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from html" -l only -d 'These rows: ids, beginnings of ids up to a dot, or beginnings with a * at the end; separated by commas [default: the characteristics on the first pages of the newest sheets]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from html" -l sheets -d 'Draw the last N sheets of each machine, and write their pages' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from html" -l archive -d 'The archive [default: ~/.local/share/hairspring/sheets.db]' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from html" -s h -l help -d 'Print help'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from prune" -l before -d 'Sheets that were taken before this day, for instance 2025-01-31' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from prune" -l keep -d 'All but the last N sheets of each machine' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from prune" -l archive -d 'The archive [default: ~/.local/share/hairspring/sheets.db]' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from prune" -l yes -d 'Remove them'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from prune" -s h -l help -d 'Print help'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from rebuild" -l archive -d 'The archive [default: ~/.local/share/hairspring/sheets.db]' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from rebuild" -s h -l help -d 'Print help'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from help" -f -a "add" -d 'Add sheets; one that is there already is left alone'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from help" -f -a "list" -d 'List the sheets, the oldest first'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show one sheet'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from help" -f -a "trend" -d 'Show figures over months: what changed them, and what cannot be told yet'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from help" -f -a "compare" -d 'Compare sheets; the archive says how much sheets of the machine vary'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from help" -f -a "export" -d 'Write all figures as Parquet files into a new folder'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from help" -f -a "html" -d 'Write a static site: machines × figures as small plots, each linked to its sheets'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from help" -f -a "prune" -d 'Remove sheets; without --yes only say which'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from help" -f -a "rebuild" -d 'Make the tables again from the stored sheets'
complete -c hairspring -n "__fish_hairspring_using_subcommand archive; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c hairspring -n "__fish_hairspring_using_subcommand ab" -l rounds -d 'Rounds: each measures every chapter with both builds, or with one pair of several [default: 10, or the next multiple of the builds]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand ab" -l only -d 'Measure only rows whose ids begin with this, for instance clocks.read,delays.minimum.fifo' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand ab" -l margin -d 'Changes below this are the same' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand ab" -l seed -d 'Seed of the order of builds and chapters [default: a new one in each run]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand ab" -l cpu -d 'CPU to measure on [default: the last one that this process may use]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand ab" -l priority -d 'Priority of the measured threads under SCHED_FIFO, 1 to 99' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand ab" -l format -d 'Format [default: by the ending of --out, otherwise text]' -r -f -a "text\t'Plain text for a terminal'
md\t'Markdown'
json\t'JSON, as `hairspring schema` describes it'
html\t'One self-contained page with plots'"
complete -c hairspring -n "__fish_hairspring_using_subcommand ab" -l out -d 'Write to this file instead of the standard output' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand ab" -l sheets -d 'Write a sheet of each build into this folder' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand ab" -l spin -d 'Lengthen every event of rows of BUILD_B, to test the comparison: ID=NANOSECONDS' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand ab" -l builds -d 'BUILD_A and BUILD_B are several builds of one source each, with commas between: equally many on both sides, best five or more. Each counts as one value, so that an effect of one program\'s layout is no finding'
complete -c hairspring -n "__fish_hairspring_using_subcommand ab" -l common -d 'Compare the common rows of builds that have different ones'
complete -c hairspring -n "__fish_hairspring_using_subcommand ab" -l confirm -d 'Take 5 rounds of all rows first, then all rounds anew of those that stand out'
complete -c hairspring -n "__fish_hairspring_using_subcommand ab" -l null -d 'Measure a copy of BUILD_A as a third build, to see which differences appear between equal builds'
complete -c hairspring -n "__fish_hairspring_using_subcommand ab" -l quick -d 'Take less than half of the usual time'
complete -c hairspring -n "__fish_hairspring_using_subcommand ab" -l verbose -d 'In text, list every row'
complete -c hairspring -n "__fish_hairspring_using_subcommand ab" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand delay" -l count -d 'Number of delays [default: as many as fit into two seconds, at most 10000]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand delay" -l priority -d 'Run under SCHED_FIFO with this priority, 1 to 99' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand delay" -l cpu -d 'Run on this CPU' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand delay" -l format -d 'Format of the report' -r -f -a "text\t''
json\t''"
complete -c hairspring -n "__fish_hairspring_using_subcommand delay" -l long -d 'Sleep first and poll only the end; required above 100 ms'
complete -c hairspring -n "__fish_hairspring_using_subcommand delay" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand clock" -l age -d 'Age of the calibration when it is printed; its bound shrinks with age' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand clock" -l format -d 'Format of the report' -r -f -a "text\t''
json\t''"
complete -c hairspring -n "__fish_hairspring_using_subcommand clock" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand can" -l job -d 'A ready-made job. May be repeated' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand can" -l jobs -d 'A TOML file of jobs, each with a name and a list of its needs' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand can" -l dir -d 'Existing folder for recordings that name none' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand can" -l sheet -d 'Answer from this sheet, without measuring' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand can" -l watch -d 'Watch each requirement for this long, and as long with idle states off [default: as long as it needs, 4 s to 20 s]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand can" -l cpu -d 'CPU to measure on [default: the last one that this process may use]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand can" -l priority -d 'Priority of the measured threads under SCHED_FIFO, 1 to 99' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand can" -l format -d 'Format of the answers' -r -f -a "text\t''
json\t''"
complete -c hairspring -n "__fish_hairspring_using_subcommand can" -l list -d 'List the ready-made jobs'
complete -c hairspring -n "__fish_hairspring_using_subcommand can" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand soak" -l job -d 'A ready-made job. May be repeated' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand soak" -l jobs -d 'A TOML file of jobs, each with a name and a list of its needs' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand soak" -l for -d 'How long to watch, for instance 8h' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand soak" -l load -d 'Load beside the job: cpu, memory, disk, net; optionally with a rate, like disk=20MB/s [disk: 5 MB/s, net: 10 MB/s]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand soak" -l block -d 'Time between two writes of the sheet; SIGKILL and a power cut lose no more than that' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand soak" -l out -d 'Write the sheet to this file, which must not exist. The load `disk` writes in its folder' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand soak" -l cpu -d 'CPU to measure on [default: the last one that this process may use]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand soak" -l priority -d 'Priority of the measured threads under SCHED_FIFO, 1 to 99' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand soak" -l show -d 'Show the sheet of a soak, also of a running one, without measuring' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand soak" -l format -d 'Format of the output' -r -f -a "text\t'Plain text for a terminal'
md\t'Markdown'
json\t'JSON, as `hairspring schema` describes it'
html\t'One self-contained page with plots'"
complete -c hairspring -n "__fish_hairspring_using_subcommand soak" -l until-no -d 'End as soon as an answer is no'
complete -c hairspring -n "__fish_hairspring_using_subcommand soak" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand doctor" -l for -d 'The job: one of `hairspring can --list`, a requirement as for `can`, or a TOML file of jobs. Of several requirements the strictest counts; settings are judged by its median' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand doctor" -l allow -d 'Also try settings beyond the program' -r -f -a "machine\t'Settings of the whole machine; each is restored after its turn, and also after SIGKILL'"
complete -c hairspring -n "__fish_hairspring_using_subcommand doctor" -l turn -d 'Length of each turn' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand doctor" -l seed -d 'Seed of the order of the turns, to repeat a run' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand doctor" -l format -d 'Format of the report' -r -f -a "text\t''
json\t''"
complete -c hairspring -n "__fish_hairspring_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand watch" -l pid -d 'Process to watch, with the processes that it starts, until it ends or Ctrl-C comes' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand watch" -l for -d 'End after this time' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand watch" -l format -d 'Format of the report' -r -f -a "text\t''
json\t''"
complete -c hairspring -n "__fish_hairspring_using_subcommand watch" -l out -d 'Write the report to this file [default: standard output; with CMD, which may print there, standard error]' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand watch" -s q -l quiet -d 'Show no progress'
complete -c hairspring -n "__fish_hairspring_using_subcommand watch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand plan" -l card -d 'Card with its rate, for instance virtual:4ch,14bit,40MS/s; may be repeated' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand plan" -l to -d 'Folders to record to, or disks of the topology; several make a stripe' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand plan" -l for -d 'Length of the recording, for instance 10min or 2h' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand plan" -l stall -d 'Longest stall of the disks; the buffers are made to outlast it twice [default: 250 ms, assumed]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand plan" -l sheet -d 'Sheet with the rates of the disks: a JSON file with the chapter Transfer, or the name of a historic sheet' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand plan" -l topology -d 'Links and buses: a JSON file (hairspring.topology/1), or one of an006-shared-pcix, an006-own-pcix, an006-shared-pci, an006-own-bus [default: those of this computer, from the kernel]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand plan" -l what-if -d 'Plan a second time with a device moved, for instance "move card0 to SEGMENT"; may be repeated' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand plan" -l also -d 'Other traffic at the same time, for instance "net0>memory:110MB/s"; may be repeated' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand plan" -l units -d 'Units of the text' -r -f -a "si\t'1 MB = 1,000,000 bytes, with MiB beside it'
an006\t'1 MB = 1,048,576 bytes, as in application note AN006'"
complete -c hairspring -n "__fish_hairspring_using_subcommand plan" -l format -d 'Format of the report' -r -f -a "text\t''
json\t''"
complete -c hairspring -n "__fish_hairspring_using_subcommand plan" -l play -d 'Plan playing, from the disks to the cards, instead of recording'
complete -c hairspring -n "__fish_hairspring_using_subcommand plan" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l to -d 'Existing folder to record into; every recording is removed again. Several folders make a stripe' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l card -d 'Card whose highest rate is searched; the rate in its description is ignored' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l for -d 'Least length of each recording' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l volume -d 'Most data that one of about twenty recordings may write; a recording is shorter if this limits it [default: half of the free space]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l limit -d 'Highest rate to try [default: four times the rate of a first recording, of a card that waits]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l resolution -d 'Stop searching when the best rate that worked and the least that failed differ by no more than this, in percent' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l confirmations -d 'Number of recordings without loss that confirm the answer; each is read back and compared' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l format -d 'Format of the report' -r -f -a "text\t''
json\t''"
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l buffer -d 'Size of the buffer of each card [default: 256MiB, but at most a quarter of the free memory]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l notify -d 'Data to collect before they are written; must divide the buffer [default: 4MiB, less for slow cards]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l pages -d 'Pages of the buffer. Falls back to smaller pages, and reports it, if unavailable' -r -f -a "small\t'The machine\'s ordinary pages'
thp\t'Transparent huge pages'
huge2m\t'Reserved 2 MiB pages'
huge1g\t'Reserved 1 GiB pages'"
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l depth -d 'Most writes under way at once' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l placement -d 'Which folder of a stripe gets the next block' -r -f -a "least-loaded\t'The folder with the fewest writes under way'
static\t'Each folder in turn'"
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l engine -d 'System calls that write. Falls back to pwrite, and reports it, if io_uring is unavailable' -r -f -a "io_uring\t'Many writes at once'
pwrite\t'One write after the other'"
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l sync -d 'Time between two syncs; what an earlier sync covers survives a power cut' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -s q -l quiet -d 'Show no progress'
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l verbose -d 'Also show what is normal: the ways to the disk, the pages, the processor time'
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l no-direct -d 'Write through the page cache'
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l card -d 'Card to record, for instance virtual:4ch,14bit,40MS/s, comedi:/dev/comedi0,2ch,10kS/s or alsa:hw:0,0,2ch,16bit,48kS/s. May be repeated: each card becomes a recording of its own, NAME-card0, NAME-card1, ...' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l to -d 'Name of the recording in an existing folder, without an ending. Several folders make a stripe' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l for -d 'How long to record, counted from the first data [default: until the card ends, or Ctrl-C]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l frames -d 'Number of frames of each card; a frame is one sample of every channel' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l wait -d 'How long to wait for the first data; if none come, end with exit code 7 [default: until Ctrl-C]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l on-overrun -d 'What to do when the disks are too slow and the buffer is full' -r -f -a "stop\t'End at the first loss and keep everything before it'
gap\t'Drop the newest data, declare the gap and continue'
overwrite\t'Drop the oldest data, declare the gap and continue'
block\t'Make the card wait; refused for a card with a clock'"
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l tap -d 'Let other processes look on at the ring, read-only, under this name or through the socket of this path: `scope --live NAME`' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l reference -d 'Clock outside the kernel with which to compare CLOCK_MONOTONIC: ptp:/dev/ptp0, or pulses, one each second: pps:/dev/pps0,late=20us' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l format -d 'Format of the report' -r -f -a "text\t''
json\t''"
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l trigger -d 'Keep only the frames around a trigger: level:ch0>0.5, level:ch0<-0.5, rising:ch0@0.5, falling:ch0@0.5~0.1, or external for the signal USR1' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l pre -d 'Frames to keep before each trigger [default: 0]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l post -d 'Frames to keep from each trigger on' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l shots -d 'Number of shots: single, repeated, or a number [default: single]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l channel -d 'What a channel measures, for instance 0=name:pressure,unit:kPa,scale:0.02. May be repeated' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l channels -d 'File that says the same in TOML, a table [channel.0] for each channel' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l segment -d 'Divide the recording into segments of this time or size, for instance 10min or 4GiB. No frame is lost between them' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l keep -d 'Keep so many closed segments, and delete older ones' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l keep-time -d 'Keep closed segments for this long after their end, and delete older ones' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l keep-bytes -d 'Keep so many bytes in closed segments, and delete the oldest ones beyond' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l keep-on -d 'Pin the segments around a trigger, so that nothing deletes them: a trigger as for --trigger' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l free -d 'End the recording in order, with exit code 12, when less than this is free on a target\'s disk; warn from twice as much on' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l priority -d 'Serve the card under SCHED_FIFO with this priority, 2 to 99; the thread that writes gets one less' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l cpu -d 'CPU of the thread that serves the card, and after a comma that of the thread that writes' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l node -d 'NUMA node of the buffer and of both threads' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l buffer -d 'Size of the buffer of each card [default: 256MiB, but at most a quarter of the free memory]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l notify -d 'Data to collect before they are written; must divide the buffer [default: 4MiB, less for slow cards]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l pages -d 'Pages of the buffer. Falls back to smaller pages, and reports it, if unavailable' -r -f -a "small\t'The machine\'s ordinary pages'
thp\t'Transparent huge pages'
huge2m\t'Reserved 2 MiB pages'
huge1g\t'Reserved 1 GiB pages'"
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l depth -d 'Most writes under way at once' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l placement -d 'Which folder of a stripe gets the next block' -r -f -a "least-loaded\t'The folder with the fewest writes under way'
static\t'Each folder in turn'"
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l engine -d 'System calls that write. Falls back to pwrite, and reports it, if io_uring is unavailable' -r -f -a "io_uring\t'Many writes at once'
pwrite\t'One write after the other'"
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l sync -d 'Time between two syncs; what an earlier sync covers survives a power cut' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l monitor -d 'Show the level of every channel in the progress line'
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -s q -l quiet -d 'Show no progress'
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l verbose -d 'Also show what is normal: the ways to the disk, the pages, the processor time'
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l resume -d 'Go on with the series of this name, or begin it if there is none'
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l unit -d 'Print a systemd unit that records like this and goes on after a restart, and end'
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l make-room -d 'Delete the oldest segments instead of ending when less than --free is free'
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l lock-memory -d 'Lock the memory of the program, so that no page of it is ever missing'
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l no-direct -d 'Write through the page cache'
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand verify" -l format -d 'Format of the report' -r -f -a "text\t''
json\t''"
complete -c hairspring -n "__fish_hairspring_using_subcommand verify" -l sha512 -d 'Print the SHA-512 of each data file, too'
complete -c hairspring -n "__fish_hairspring_using_subcommand verify" -l no-counters -d 'Do not compare the data with the generator of a virtual card'
complete -c hairspring -n "__fish_hairspring_using_subcommand verify" -s q -l quiet -d 'Show no progress'
complete -c hairspring -n "__fish_hairspring_using_subcommand verify" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand play" -l to -d 'Output: null, file:PATH, stdout, alsa:hw:0,0 for a sound card, or virtual:fifo=4MiB, which has a clock, too' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand play" -l rate -d 'Frames per second, for instance 40MS/s [default: the recorded rate for virtual and alsa, as fast as possible for the others]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand play" -l speed -d 'Multiple of the recorded rate, for instance 0.5 or 2' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand play" -l gaps -d 'What to play where the recording has a gap: zero, hold (the last frame), or skip' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand play" -l loop -d 'How often to play it: a number, or forever' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand play" -l preroll -d 'Fill of the buffer, in percent, at which the clock starts' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand play" -l buffer -d 'Size of the buffer between the disks and the output [default: 256MiB]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand play" -l pages -d 'Pages of the buffer. Falls back to smaller pages, and reports it, if unavailable' -r -f -a "small\t'The machine\'s ordinary pages'
thp\t'Transparent huge pages'
huge2m\t'Reserved 2 MiB pages'
huge1g\t'Reserved 1 GiB pages'"
complete -c hairspring -n "__fish_hairspring_using_subcommand play" -l depth -d 'Most reads under way at once' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand play" -l format -d 'Format of the report; it goes to the standard error if the samples go to the standard output' -r -f -a "text\t''
json\t''"
complete -c hairspring -n "__fish_hairspring_using_subcommand play" -s q -l quiet -d 'Show no progress'
complete -c hairspring -n "__fish_hairspring_using_subcommand play" -l verbose -d 'Also show what is normal: the ways to the disk, the pages, the processor time'
complete -c hairspring -n "__fish_hairspring_using_subcommand play" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand export" -l out -d 'New file to write' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand export" -l as -d 'Kind of file [default: by the ending of --out]' -r -f -a "hdf5\t'HDF5 view; the samples stay in the recording\'s files'
npy\t'NumPy array'
wav\t'WAV; beyond 4 GiB RF64'
flac\t'FLAC, for integers'
zarr\t'Folder of Zarr version 3: shards of chunks, compressed by zstd'
csv\t'Text, for short cuts'"
complete -c hairspring -n "__fish_hairspring_using_subcommand export" -l from -d 'First frame, as the card counted them' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand export" -l frames -d 'Number of frames [default: all; for CSV at most a million]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand export" -l gaps -d 'What becomes of missing frames in npy, wav, flac and zarr' -r -f -a "refuse\t'Nothing is exported'
skip\t'They are left out, so that the frames around a gap become neighbours'
fill\t'Each missing sample gets the value of --fill'"
complete -c hairspring -n "__fish_hairspring_using_subcommand export" -l fill -d 'The value of each missing sample with --gaps fill [default: 0; NaN with --scaled]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand export" -l format -d 'Format of the report' -r -f -a "text\t''
json\t''"
complete -c hairspring -n "__fish_hairspring_using_subcommand export" -l scaled -d 'Write values in the units of the channels, as 64-bit floats, instead of codes: npy, zarr, csv, and HDF5, which becomes a copy'
complete -c hairspring -n "__fish_hairspring_using_subcommand export" -s q -l quiet -d 'Show no progress'
complete -c hairspring -n "__fish_hairspring_using_subcommand export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand recover" -l format -d 'Format of the report' -r -f -a "text\t''
json\t''"
complete -c hairspring -n "__fish_hairspring_using_subcommand recover" -l dry-run -d 'Print what would change, without changing it'
complete -c hairspring -n "__fish_hairspring_using_subcommand recover" -l all -d 'Read every block, even those that a sync covers'
complete -c hairspring -n "__fish_hairspring_using_subcommand recover" -l cut-journal -d 'Give up everything after damage in the middle of a journal'
complete -c hairspring -n "__fish_hairspring_using_subcommand recover" -l discard -d 'Give up what is cut off, instead of keeping it in NAME.cut-1, NAME.cut-2, …'
complete -c hairspring -n "__fish_hairspring_using_subcommand recover" -s q -l quiet -d 'Show no progress'
complete -c hairspring -n "__fish_hairspring_using_subcommand recover" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand join" -l to -d 'Name of the new recording in an existing folder, without an ending' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand join" -l format -d 'Format of the report' -r -f -a "text\t''
json\t''"
complete -c hairspring -n "__fish_hairspring_using_subcommand join" -l declare-gaps -d 'Turn missing parts and damaged blocks into declared gaps instead of refusing'
complete -c hairspring -n "__fish_hairspring_using_subcommand join" -s q -l quiet -d 'Show no progress'
complete -c hairspring -n "__fish_hairspring_using_subcommand join" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand keep" -l format -d 'Format of the report' -r -f -a "text\t''
json\t''"
complete -c hairspring -n "__fish_hairspring_using_subcommand keep" -l release -d 'Release them'
complete -c hairspring -n "__fish_hairspring_using_subcommand keep" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand compress" -l level -d 'Effort of zstd: 1 is fast, 19 is small' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand compress" -l format -d 'Format of the report' -r -f -a "text\t''
json\t''"
complete -c hairspring -n "__fish_hairspring_using_subcommand compress" -l undo -d 'Restore the data files'
complete -c hairspring -n "__fish_hairspring_using_subcommand compress" -s q -l quiet -d 'Show no progress'
complete -c hairspring -n "__fish_hairspring_using_subcommand compress" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand pulse" -l device -d 'Device, for instance parport:/dev/parport0 or virtual:/dev/shm/board,write=1.25us. Drivers: virtual, parport, gpio, serial, comedi, pci. The device is initialised; a virtual board that does not exist is created' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand pulse" -l line -d 'Line, 0 to 31' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand pulse" -l count -d 'Number of pulses' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand pulse" -l period -d 'Time from the start of one pulse to the start of the next [default: ten widths, at least 100 us]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand pulse" -l out -d 'Draw all pulses over each other into this file (.svg)' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand pulse" -l priority -d 'Run under SCHED_FIFO with this priority, 1 to 99' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand pulse" -l cpu -d 'Run on this CPU' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand pulse" -l format -d 'Format of the report' -r -f -a "text\t''
json\t''"
complete -c hairspring -n "__fish_hairspring_using_subcommand pulse" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand expose" -l device -d 'Shutter\'s device, for instance virtual:/dev/shm/board. The device is initialised; a virtual board that does not exist is created' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand expose" -l line -d 'Shutter\'s line, 0 to 31. The safe state closes the shutter; the opposite level opens it' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand expose" -l instrument -d 'Read this instrument after half the time: tcp:HOST:PORT, serial:DEVICE,baud=N or usbtmc:DEVICE' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand expose" -l query -d 'Question for the instrument' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand expose" -l timeout -d 'How long to wait for the answer [default: until 5 ms before the shutter has to close, or half of the time left if that is less]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand expose" -l count -d 'Number of exposures' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand expose" -l period -d 'Time from the start of one exposure to the start of the next [default: each starts when the previous one has ended]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand expose" -l priority -d 'Run under SCHED_FIFO with this priority, 1 to 99' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand expose" -l cpu -d 'Run on this CPU' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand expose" -l format -d 'Format of the report' -r -f -a "text\t''
json\t''"
complete -c hairspring -n "__fish_hairspring_using_subcommand expose" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand scope" -l device -d 'Virtual board to watch; a board that does not exist is created' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand scope" -l live -d 'Recording to watch: the name or path that `record --tap` gave it' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand scope" -l for -d 'How long to watch; Ctrl-C ends it earlier [default: 1s; a recording on a terminal until its end]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand scope" -l format -d 'Format of the report' -r -f -a "text\t''
json\t''"
complete -c hairspring -n "__fish_hairspring_using_subcommand scope" -l edges -d 'Most edges to keep' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand scope" -l cpu -d 'CPU to watch from; it is busy all the time' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand scope" -l out -d 'Write the edges to this file: as a value change dump (.vcd), or drawn as pulses over each other (.svg)' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand scope" -l marker -d 'Mark these widths in the drawing, at most 4; pulses shorter than the first mark are highlighted' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand scope" -l span -d 'Time that the picture of a recording covers' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand scope" -l serve -d 'Serve a page that draws the recording in a browser, until the recording ends; port 0 takes a free one' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand scope" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand serve" -l for -d 'How long to serve [default: until Ctrl-C]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand serve" -l publish -d 'Publish the state of the station under this name, or in this folder, for other processes to read' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand serve" -l format -d 'Format of the report' -r -f -a "text\t''
json\t''"
complete -c hairspring -n "__fish_hairspring_using_subcommand serve" -l check -d 'Print the file with every default filled in, and end'
complete -c hairspring -n "__fish_hairspring_using_subcommand serve" -l screen -d 'Print a screen of the station for Phoebus (.bob), and end'
complete -c hairspring -n "__fish_hairspring_using_subcommand serve" -s q -l quiet -d 'Show no progress'
complete -c hairspring -n "__fish_hairspring_using_subcommand serve" -l verbose -d 'Also show the settings, stages and account of every unit'
complete -c hairspring -n "__fish_hairspring_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand trace" -l backend -d 'Back-end that runs the tasks' -r -f -a "sim\t'Virtual time: the same in every run'
fiber\t'Fibers on one thread; they switch at calls'
thread-up\t'Threads on one CPU; strict priority where real-time priority is granted'
thread-smp\t'Threads on all CPUs'"
complete -c hairspring -n "__fish_hairspring_using_subcommand trace" -l out -d 'Write the trace to this file: as a value change dump (.vcd) or as trace events (.json) [default: a table on the standard output]' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand trace" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand top" -l every -d 'Time from one picture to the next, and the time that CPU shares are of' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand top" -l once -d 'Print one picture and end'
complete -c hairspring -n "__fish_hairspring_using_subcommand top" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand run" -l set -d 'Settings and their values, for instance idle=off,policy=fifo:80,cpu=1. `hairspring settings` lists them. May be repeated' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand run" -l as -d 'Settings for a job: one of `hairspring can --list`, a requirement as for `can`, or a TOML file of jobs' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand run" -l allow -d 'Permit changes beyond the program' -r -f -a "machine\t'Settings of the whole machine, until the program has ended'"
complete -c hairspring -n "__fish_hairspring_using_subcommand run" -l best -d 'Settings that the last `hairspring doctor` confirmed on this machine. Values of --set take precedence over these and those of --as'
complete -c hairspring -n "__fish_hairspring_using_subcommand run" -l quiet -d 'Do not report the settings on standard error'
complete -c hairspring -n "__fish_hairspring_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand settings" -l format -d 'Format of the output' -r -f -a "text\t''
json\t''"
complete -c hairspring -n "__fish_hairspring_using_subcommand settings" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand restore" -l wait -d 'Wait until the command that now changes settings has ended; `run` starts this in case it is killed'
complete -c hairspring -n "__fish_hairspring_using_subcommand restore" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand probes" -l only -d 'List only rows whose ids begin with this, for instance clocks.read,delays.minimum.fifo' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand probes" -l format -d 'Format of the list' -r -f -a "text\t'Ids with units and methods'
md\t'Markdown tables that say what each row measures'
json\t'JSON'"
complete -c hairspring -n "__fish_hairspring_using_subcommand probes" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand schema" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand exit-codes" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand man" -l out -d 'Write all pages into this existing folder instead' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand man" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "round" -d 'Measure one round of a sheet; `sheet` starts it'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "chain" -d 'Run as a process of the chapter Reaction; `sheet` starts it'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "turn" -d 'Do a job under the settings of this process; `doctor` starts it'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "load" -d 'Produce load beside a soak; `soak` starts it'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "caller" -d 'Make the calls of the chapter Callers from Rust; `sheet` starts it'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "sheet" -d 'Measure this computer and print its timing data sheet'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "compare" -d 'Compare sheets: what differs, and what cannot be decided'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "archive" -d 'Keep sheets for years, and show what changed'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "ab" -d 'Measure two builds in turns and say what differs'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "delay" -d 'Make delays and show how late each returned'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "clock" -d 'Calibrate the processor\'s counter and say whether to trust it'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "can" -d 'Say whether this computer can do a job: yes, no or not shown'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "soak" -d 'Watch a job for hours, under a load, and keep the result'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "doctor" -d 'Try the settings that could make a job better here'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "watch" -d 'Say who delays the threads of a program'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "plan" -d 'Say whether a set-up can carry a recording, and what limits it'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "maxrate" -d 'Find the highest rate at which this machine loses no data'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "record" -d 'Record cards to disk, and account for every byte'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "verify" -d 'Check every byte of a recording against its checksums'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "play" -d 'Play a recording, at its own rate or as fast as possible'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "export" -d 'Export a recording for other programs: HDF5, NumPy, CSV'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "recover" -d 'Repair a recording after a crash, a power cut or damage'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "join" -d 'Join the parts of a stripe or the segments of a series'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "keep" -d 'Keep segments of a series from being deleted, or release them'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "compress" -d 'Compress closed recordings without loss, or restore them'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "pulse" -d 'Make pulses on a line of a device, never shorter than requested'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "expose" -d 'Open a shutter for an exact time, and read an instrument'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "scope" -d 'Watch the lines of a virtual board, or a recording that runs'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "serve" -d 'Run a front end that a station file describes'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "trace" -d 'Run an example on the executive and show who ran when'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "top" -d 'Watch the tasks of a running executive'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "run" -d 'Run a program under settings that improve its timing'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "settings" -d 'List settings that affect timing, with their present values'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "restore" -d 'Restore settings that a killed command left changed'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "probes" -d 'List every row that a sheet can have'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "schema" -d 'Print the JSON Schema of a sheet or a comparison'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "exit-codes" -d 'Print the table of exit codes'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "completions" -d 'Print completions for a shell'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "man" -d 'Print the manual page of a command, or write all of them'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from round chain turn load caller sheet compare archive ab delay clock can soak doctor watch plan maxrate record verify play export recover join keep compress pulse expose scope serve trace top run settings restore probes schema exit-codes completions man help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and __fish_seen_subcommand_from archive" -f -a "add" -d 'Add sheets; one that is there already is left alone'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and __fish_seen_subcommand_from archive" -f -a "list" -d 'List the sheets, the oldest first'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and __fish_seen_subcommand_from archive" -f -a "show" -d 'Show one sheet'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and __fish_seen_subcommand_from archive" -f -a "trend" -d 'Show figures over months: what changed them, and what cannot be told yet'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and __fish_seen_subcommand_from archive" -f -a "compare" -d 'Compare sheets; the archive says how much sheets of the machine vary'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and __fish_seen_subcommand_from archive" -f -a "export" -d 'Write all figures as Parquet files into a new folder'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and __fish_seen_subcommand_from archive" -f -a "html" -d 'Write a static site: machines × figures as small plots, each linked to its sheets'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and __fish_seen_subcommand_from archive" -f -a "prune" -d 'Remove sheets; without --yes only say which'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and __fish_seen_subcommand_from archive" -f -a "rebuild" -d 'Make the tables again from the stored sheets'
