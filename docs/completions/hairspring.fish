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
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "record" -d 'Record cards to disk, with nothing lost or everything lost accounted for'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "play" -d 'Play a recording at its rate, or as fast as the output takes it'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "verify" -d 'Prove every byte of a recording'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "recover" -d 'Put a recording in order after a crash, a power cut or damage'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "join" -d 'Join the parts of a stripe into one recording'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "export" -d 'Show a recording to other programs: HDF5, NumPy, CSV'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "plan" -d 'Plan a recording: whether a set-up carries it, what limits it, which sizes it needs'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "maxrate" -d 'Find the highest rate at which nothing is lost, by recording, and say how sure that is'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "pulse" -d 'Make pulses on a line of a device, never shorter than asked'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "scope" -d 'Watch the lines of a virtual board from another CPU'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "expose" -d 'Open a shutter for an exact time, with an instrument read in the middle'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "serve" -d 'Run a front end: what happens outside releases actions that drive devices'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "chain" -d 'Be a process of the chapter Reaction; `sheet` starts it'
complete -c hairspring -n "__fish_hairspring_needs_command" -f -a "caller" -d 'Make the calls of the chapter Callers from Rust; `sheet` starts it'
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
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l beside -d 'Compare with another sheet: a JSON file, or the name of a historic one (fermilab-2007, fermilab-bit3, amx86-486sx, amx86-net186, amx86-turbo186, freertos-threadx-linux, an006-bus, an006-continuous, an006-reference-1, an006-reference-2, an006-reference-3, fesa-2007)' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l dir -d 'Also measure the disk under this folder, which is written to; several folders are several targets' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand sheet" -l volume -d 'The most that is written there altogether [default: 16GiB, with --quick 4GiB, with --thorough 128GiB]' -r
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
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l card -d 'What to record, for instance virtual:4ch,14bit,40MS/s or comedi:/dev/comedi0,2ch,10kS/s; again for further cards, which become recordings of their own: x-card0, x-card1, ...' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l to -d 'Name of the recording in an existing folder, without an ending; several folders make a stripe' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l for -d 'How long, from the first data on [default: until the card ends, or Ctrl-C]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l wait -d 'How long to wait for a sender\'s first data at most [default: until Ctrl-C]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l frames -d 'How many frames of each card, a frame being one sample of every channel' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l trigger -d 'Keep only what a trigger asks for: level:ch0>0.5, level:ch0<-0.5, rising:ch0@0.5, falling:ch0@0.5~0.1, or external, which is the signal USR1' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l pre -d 'Frames kept before each trigger [default: 0]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l post -d 'Frames kept from each trigger on' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l shots -d 'How many shots: single, repeated, or a number [default: single]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l on-overrun -d 'What to do when the disks are too slow and the buffer is full' -r -f -a "stop\t'End at the first loss; everything before it is kept'
gap\t'Drop the newest, declare the gap, go on'
overwrite\t'Drop the oldest, declare the gap, go on'
block\t'Make the card wait; refused for one with a clock'"
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l buffer -d 'Memory between each card and the disks [default: 256MiB, and at most a quarter of what is free]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l notify -d 'How much comes together before it is written; must divide the buffer [default: 4MiB, less for slow cards]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l pages -d 'The pages of the buffer; weaker ones are taken, and named, where these are not to be had' -r -f -a "small\t'The machine\'s ordinary ones'
thp\t'Transparent huge pages'
huge2m\t'2 MiB pages that were set aside'
huge1g\t'1 GiB pages that were set aside'"
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l depth -d 'Writes under way at once' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l placement -d 'Which folder of a stripe gets the next block' -r -f -a "least-loaded\t'The one with the least under way'
static\t'Each in turn'"
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l engine -d 'How to write; the plain way is taken, and named, where io_uring is not to be had' -r -f -a "io_uring\t'Many writes at once through io_uring'
pwrite\t'One plain call after the other'"
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l sync -d 'Time between two syncs: what is older survives a power cut' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l format -d 'The format of the report' -r -f -a "text\t'For people'
json\t'For programs'"
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l no-direct -d 'Write through the page cache'
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l monitor -d 'Show the level of every channel, too'
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -l quiet -d 'Show nothing until the end'
complete -c hairspring -n "__fish_hairspring_using_subcommand record" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand play" -l to -d 'Where to: null, file:PATH, stdout, or virtual:fifo=4MiB, which has a clock' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand play" -l rate -d 'Frames per second, for instance 40MS/s [default: as fast as the output takes them; of a virtual one, as recorded]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand play" -l speed -d 'So many times as fast as it was recorded' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand play" -l gaps -d 'What is played where the recording has a gap: zero, hold (the last frame), or skip' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand play" -l loop -d 'How often, or forever' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand play" -l preroll -d 'How full the buffer must be before the clock starts, in percent' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand play" -l buffer -d 'Memory between the disks and the output [default: 256MiB]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand play" -l pages -d 'The pages of the buffer' -r -f -a "small\t'The machine\'s ordinary ones'
thp\t'Transparent huge pages'
huge2m\t'2 MiB pages that were set aside'
huge1g\t'1 GiB pages that were set aside'"
complete -c hairspring -n "__fish_hairspring_using_subcommand play" -l depth -d 'Reads under way at once' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand play" -l format -d 'The format of the report; it goes to the standard error if the samples go to the standard output' -r -f -a "text\t'For people'
json\t'For programs'"
complete -c hairspring -n "__fish_hairspring_using_subcommand play" -l quiet -d 'Show nothing until the end'
complete -c hairspring -n "__fish_hairspring_using_subcommand play" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand verify" -l format -d 'The format' -r -f -a "text\t'For people'
json\t'For programs'"
complete -c hairspring -n "__fish_hairspring_using_subcommand verify" -l sha512 -d 'Print the SHA-512 of each data file, too'
complete -c hairspring -n "__fish_hairspring_using_subcommand verify" -l no-counters -d 'Do not compare the data with the generator that made them, where it is known'
complete -c hairspring -n "__fish_hairspring_using_subcommand verify" -l quiet -d 'Show nothing until the end'
complete -c hairspring -n "__fish_hairspring_using_subcommand verify" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand recover" -l format -d 'The format' -r -f -a "text\t'For people'
json\t'For programs'"
complete -c hairspring -n "__fish_hairspring_using_subcommand recover" -l dry-run -d 'Change nothing, and say what would be changed'
complete -c hairspring -n "__fish_hairspring_using_subcommand recover" -l all -d 'Read every block, also those that a sync covers'
complete -c hairspring -n "__fish_hairspring_using_subcommand recover" -l cut-journal -d 'Give up what stands behind damage in the middle of a journal'
complete -c hairspring -n "__fish_hairspring_using_subcommand recover" -l quiet -d 'Show nothing until the end'
complete -c hairspring -n "__fish_hairspring_using_subcommand recover" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand join" -l to -d 'Name of the new recording in an existing folder, without an ending' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand join" -l format -d 'The format' -r -f -a "text\t'For people'
json\t'For programs'"
complete -c hairspring -n "__fish_hairspring_using_subcommand join" -l declare-gaps -d 'Let missing parts and damaged blocks become gaps, instead of refusing'
complete -c hairspring -n "__fish_hairspring_using_subcommand join" -l quiet -d 'Show nothing until the end'
complete -c hairspring -n "__fish_hairspring_using_subcommand join" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand export" -l out -d 'Write this new file' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand export" -l as -d 'The form [default: by the ending of --out]' -r -f -a "hdf5\t'A view for HDF5; the samples stay where they are'
npy\t'An array for NumPy'
csv\t'Text, for small cuts'"
complete -c hairspring -n "__fish_hairspring_using_subcommand export" -l from -d 'The first frame, counted as the card produced them' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand export" -l frames -d 'How many frames [default: all; of CSV at most a million]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand export" -l format -d 'The format of the report' -r -f -a "text\t'For people'
json\t'For programs'"
complete -c hairspring -n "__fish_hairspring_using_subcommand export" -l leave-out-gaps -d 'In an array, let frames on both sides of a gap become neighbours'
complete -c hairspring -n "__fish_hairspring_using_subcommand export" -l quiet -d 'Show nothing until the end'
complete -c hairspring -n "__fish_hairspring_using_subcommand export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand plan" -l card -d 'A card with its rate, for instance virtual:4ch,14bit,40MS/s; once for each' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand plan" -l to -d 'The folders to record to, striped over all of them; or disks of the topology' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand plan" -l for -d 'How long, for instance 10min or 2h' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand plan" -l stall -d 'The worst stall of the disks that the buffers have to outlast twice [default: 250 ms, assumed]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand plan" -l sheet -d 'What the disks sustain: a sheet with the chapter Transfer, as a JSON file, or the name of a historic one' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand plan" -l topology -d 'The links and buses: a JSON file (hairspring.topology/1), or one of an006-shared-pcix, an006-own-pcix, an006-shared-pci, an006-own-bus [default: what the kernel tells of this computer]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand plan" -l what-if -d 'Show the plan beside that with a device elsewhere, for instance "move card0 to SEGMENT"; may be repeated' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand plan" -l also -d 'What else moves meanwhile, for instance "net0>memory:110MB/s"; may be repeated' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand plan" -l units -d 'The units of the text' -r -f -a "si\t'MB of 1,000,000 bytes with MiB beside it'
an006\t'MB of 1,048,576 bytes, as application note AN006 has it'"
complete -c hairspring -n "__fish_hairspring_using_subcommand plan" -l format -d 'The format' -r -f -a "text\t'For people'
json\t'For programs'"
complete -c hairspring -n "__fish_hairspring_using_subcommand plan" -l play -d 'Plan the way back, from the disks to the cards'
complete -c hairspring -n "__fish_hairspring_using_subcommand plan" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l to -d 'Record into this existing folder, and remove it again; several folders make a stripe' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l card -d 'The card whose highest rate is searched; the rate it is written with does not matter' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l for -d 'How long each recording lasts at least' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l volume -d 'The most that one recording of the search may write, of which there are some twenty, each removed again; a shorter one is made where that is less [default: half of what is free]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l limit -d 'Try no rate above this [default: four times what a first recording of a waiting card reaches]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l resolution -d 'Search until the rates that did and did not work differ by no more than this, in percent' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l confirmations -d 'Recordings without loss, each read back and compared, that the answer rests on' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l buffer -d 'Memory between each card and the disks [default: 256MiB, and at most a quarter of what is free]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l notify -d 'How much comes together before it is written; must divide the buffer [default: 4MiB, less for slow cards]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l pages -d 'The pages of the buffer; weaker ones are taken, and named, where these are not to be had' -r -f -a "small\t'The machine\'s ordinary ones'
thp\t'Transparent huge pages'
huge2m\t'2 MiB pages that were set aside'
huge1g\t'1 GiB pages that were set aside'"
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l depth -d 'Writes under way at once' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l placement -d 'Which folder of a stripe gets the next block' -r -f -a "least-loaded\t'The one with the least under way'
static\t'Each in turn'"
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l engine -d 'How to write; the plain way is taken, and named, where io_uring is not to be had' -r -f -a "io_uring\t'Many writes at once through io_uring'
pwrite\t'One plain call after the other'"
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l sync -d 'Time between two syncs: what is older survives a power cut' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l format -d 'The format' -r -f -a "text\t'For people'
json\t'For programs'"
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l no-direct -d 'Write through the page cache'
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -l quiet -d 'Show nothing until the end'
complete -c hairspring -n "__fish_hairspring_using_subcommand maxrate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand pulse" -l device -d 'The device, for instance parport:/dev/parport0 or virtual:/dev/shm/board,write=1.25us; drivers: virtual, parport, gpio, serial, comedi, pci. It is initialised; a virtual board is made if it is not there' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand pulse" -l line -d 'The line, 0 to 31' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand pulse" -l count -d 'How many pulses' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand pulse" -l period -d 'From the beginning of one to that of the next [default: ten widths, at least 100 us]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand pulse" -l out -d 'Draw the pulses over each other into this file (.svg)' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand pulse" -l priority -d 'Run under SCHED_FIFO with this priority, 1 to 99' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand pulse" -l cpu -d 'Stay on this CPU' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand pulse" -l format -d 'The format' -r -f -a "text\t'For people'
json\t'For programs'"
complete -c hairspring -n "__fish_hairspring_using_subcommand pulse" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand scope" -l device -d 'The virtual board to watch; it is made if it is not there' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand scope" -l for -d 'How long; Ctrl-C ends it earlier' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand scope" -l edges -d 'Edges that there is room for' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand scope" -l cpu -d 'Watch from this CPU, which is busy with it all the time' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand scope" -l out -d 'Write what was seen to this file, as a value change dump (.vcd) or as pulses drawn over each other (.svg)' -r -F
complete -c hairspring -n "__fish_hairspring_using_subcommand scope" -l marker -d 'Mark these widths in the drawing, at most 4; what is shorter than the first is told apart' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand scope" -l format -d 'The format' -r -f -a "text\t'For people'
json\t'For programs'"
complete -c hairspring -n "__fish_hairspring_using_subcommand scope" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand expose" -l device -d 'The shutter\'s device, for instance virtual:/dev/shm/board; it is initialised, and made if it is not there' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand expose" -l line -d 'The shutter\'s line, 0 to 31; closed is its safe state, open the opposite' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand expose" -l instrument -d 'Read this instrument when half the time is over: tcp:HOST:PORT, serial:DEVICE,baud=N or usbtmc:DEVICE' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand expose" -l query -d 'What to ask it' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand expose" -l timeout -d 'How long to wait for its answer [default: until 5 ms before the shutter has to close, or half of what is left then]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand expose" -l count -d 'How many exposures' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand expose" -l period -d 'From the beginning of one to that of the next [default: each begins when the one before has ended]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand expose" -l priority -d 'Run under SCHED_FIFO with this priority, 1 to 99' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand expose" -l cpu -d 'Stay on this CPU' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand expose" -l format -d 'The format' -r -f -a "text\t'For people'
json\t'For programs'"
complete -c hairspring -n "__fish_hairspring_using_subcommand expose" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand serve" -l for -d 'How long [default: until Ctrl-C]' -r
complete -c hairspring -n "__fish_hairspring_using_subcommand serve" -l format -d 'The format' -r -f -a "text\t'For people'
json\t'For programs'"
complete -c hairspring -n "__fish_hairspring_using_subcommand serve" -l check -d 'Say how the file is understood, with everything that it does not say, and end'
complete -c hairspring -n "__fish_hairspring_using_subcommand serve" -s q -l quiet -d 'Do not show how it stands'
complete -c hairspring -n "__fish_hairspring_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c hairspring -n "__fish_hairspring_using_subcommand chain" -s h -l help -d 'Print help'
complete -c hairspring -n "__fish_hairspring_using_subcommand caller" -s h -l help -d 'Print help'
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
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace record play verify recover join export plan maxrate pulse scope expose serve chain caller compare probes schema exit-codes completions man help" -f -a "sheet" -d 'Measure this computer and print its timing data sheet'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace record play verify recover join export plan maxrate pulse scope expose serve chain caller compare probes schema exit-codes completions man help" -f -a "delay" -d 'Perform delays and show how late they returned'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace record play verify recover join export plan maxrate pulse scope expose serve chain caller compare probes schema exit-codes completions man help" -f -a "clock" -d 'Print the calibration of the counter and whether it can be trusted'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace record play verify recover join export plan maxrate pulse scope expose serve chain caller compare probes schema exit-codes completions man help" -f -a "trace" -d 'Run an example on the executive and show who ran and who waited when'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace record play verify recover join export plan maxrate pulse scope expose serve chain caller compare probes schema exit-codes completions man help" -f -a "record" -d 'Record cards to disk, with nothing lost or everything lost accounted for'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace record play verify recover join export plan maxrate pulse scope expose serve chain caller compare probes schema exit-codes completions man help" -f -a "play" -d 'Play a recording at its rate, or as fast as the output takes it'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace record play verify recover join export plan maxrate pulse scope expose serve chain caller compare probes schema exit-codes completions man help" -f -a "verify" -d 'Prove every byte of a recording'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace record play verify recover join export plan maxrate pulse scope expose serve chain caller compare probes schema exit-codes completions man help" -f -a "recover" -d 'Put a recording in order after a crash, a power cut or damage'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace record play verify recover join export plan maxrate pulse scope expose serve chain caller compare probes schema exit-codes completions man help" -f -a "join" -d 'Join the parts of a stripe into one recording'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace record play verify recover join export plan maxrate pulse scope expose serve chain caller compare probes schema exit-codes completions man help" -f -a "export" -d 'Show a recording to other programs: HDF5, NumPy, CSV'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace record play verify recover join export plan maxrate pulse scope expose serve chain caller compare probes schema exit-codes completions man help" -f -a "plan" -d 'Plan a recording: whether a set-up carries it, what limits it, which sizes it needs'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace record play verify recover join export plan maxrate pulse scope expose serve chain caller compare probes schema exit-codes completions man help" -f -a "maxrate" -d 'Find the highest rate at which nothing is lost, by recording, and say how sure that is'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace record play verify recover join export plan maxrate pulse scope expose serve chain caller compare probes schema exit-codes completions man help" -f -a "pulse" -d 'Make pulses on a line of a device, never shorter than asked'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace record play verify recover join export plan maxrate pulse scope expose serve chain caller compare probes schema exit-codes completions man help" -f -a "scope" -d 'Watch the lines of a virtual board from another CPU'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace record play verify recover join export plan maxrate pulse scope expose serve chain caller compare probes schema exit-codes completions man help" -f -a "expose" -d 'Open a shutter for an exact time, with an instrument read in the middle'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace record play verify recover join export plan maxrate pulse scope expose serve chain caller compare probes schema exit-codes completions man help" -f -a "serve" -d 'Run a front end: what happens outside releases actions that drive devices'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace record play verify recover join export plan maxrate pulse scope expose serve chain caller compare probes schema exit-codes completions man help" -f -a "chain" -d 'Be a process of the chapter Reaction; `sheet` starts it'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace record play verify recover join export plan maxrate pulse scope expose serve chain caller compare probes schema exit-codes completions man help" -f -a "caller" -d 'Make the calls of the chapter Callers from Rust; `sheet` starts it'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace record play verify recover join export plan maxrate pulse scope expose serve chain caller compare probes schema exit-codes completions man help" -f -a "compare" -d 'Compare sheets: what differs in the conditions, then ratios with intervals'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace record play verify recover join export plan maxrate pulse scope expose serve chain caller compare probes schema exit-codes completions man help" -f -a "probes" -d 'List every probe: what it measures, its unit, its method'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace record play verify recover join export plan maxrate pulse scope expose serve chain caller compare probes schema exit-codes completions man help" -f -a "schema" -d 'Print the JSON Schema of a sheet'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace record play verify recover join export plan maxrate pulse scope expose serve chain caller compare probes schema exit-codes completions man help" -f -a "exit-codes" -d 'Print the table of exit codes'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace record play verify recover join export plan maxrate pulse scope expose serve chain caller compare probes schema exit-codes completions man help" -f -a "completions" -d 'Print completions for a shell'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace record play verify recover join export plan maxrate pulse scope expose serve chain caller compare probes schema exit-codes completions man help" -f -a "man" -d 'Print the man page'
complete -c hairspring -n "__fish_hairspring_using_subcommand help; and not __fish_seen_subcommand_from sheet delay clock trace record play verify recover join export plan maxrate pulse scope expose serve chain caller compare probes schema exit-codes completions man help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
