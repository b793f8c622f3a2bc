# The life of the packages in a clean system: installed, used, purged. Each line that can fail ends the script. A line "skip: WHY" is counted.
# Without what adduser keeps beside the accounts.
files() { find / -xdev \( -path /proc -o -path /dev -o -path /packages -o -path /tmp -o -path /var/lib/dpkg -o -path /var/log -o -path /var/cache -o -path /run/adduser -o -path '/etc/*-' \) -prune -o -print | LC_ALL=C sort; }
accounts() { cat /etc/group /etc/passwd; }
files > /tmp/files.before; accounts > /tmp/accounts.before

dpkg --install /packages/*.deb
dpkg --audit
if dpkg --list '*hairspring*' | grep -E '^i[^i ]'; then exit 1; fi

# The command and its manual.
hairspring --version
hairspring delay 10us --count 3
test -s /usr/share/man/man1/hairspring.1.gz -a -s /usr/share/bash-completion/completions/hairspring
# A program that the linker bound to the library.
head -c 8192 /dev/zero > /tmp/word
/usr/libexec/hairspring/callers-c /tmp/word 20
# Python: alone, and nothing else is imported.
python3 -c '
import sys
import hairspring
extras = {"numpy", "pandas", "dask", "xarray", "p4p", "distributed"} & set(sys.modules)
assert not extras, extras
report = hairspring.delay(50e-6)
assert report.late_ns >= 0
print("python late", report.late_ns)
'
echo 'package require hairspring; set timebase [hairspring calibrate]; puts "tcl [package provide hairspring]"' > /tmp/use.tcl
tclsh /tmp/use.tcl
# What a C program needs to be compiled.
test -f /usr/include/hairspring.h -a -e /usr/lib/*/libhairspring.so -a -f /usr/lib/*/libhairspring.a
test -f /usr/lib/*/pkgconfig/hairspring.pc -a -f /usr/lib/*/cmake/hairspring/hairspringConfig.cmake
# The rights: a group without members, and what it may do.
getent group hairspring | grep -q ':$'
test "$(stat -c '%a %G' /usr/lib/hairspring/perf/hairspring)" = '750 hairspring'
getcap /usr/lib/hairspring/perf/hairspring | grep -q cap_perfmon
hairspring-perf --version
test -f '/usr/lib/systemd/system/hairspring-station@.service' -a -f /usr/lib/udev/rules.d/60-hairspring.rules
grep -q '^@hairspring.*rtprio' /etc/security/limits.d/hairspring.conf
# A member of the group has these rights in a session, which PAM opens, and a stranger has none of them. Both begin without any.
useradd --create-home --shell /bin/sh member; useradd --create-home --shell /bin/sh stranger
usermod --append --groups hairspring member
# The device as the rule makes it: the machine's own stays as it is.
if [ -c /dev/cpu_dma_latency ]; then
    rule=/usr/lib/udev/rules.d/60-hairspring.rules
    mknod /tmp/cpu_dma_latency c $(stat -c '0x%t 0x%T' /dev/cpu_dma_latency)
    chgrp "$(sed -n 's/.*GROUP="\([^"]*\)".*/\1/p' $rule)" /tmp/cpu_dma_latency
    chmod "$(sed -n 's/.*MODE="\([^"]*\)".*/\1/p' $rule)" /tmp/cpu_dma_latency
    su member -c 'exec 3<> /tmp/cpu_dma_latency'
    if su stranger -c 'exec 3<> /tmp/cpu_dma_latency'; then exit 1; fi
    rm /tmp/cpu_dma_latency
else
    echo 'skip: this kernel has no /dev/cpu_dma_latency, so the mode of the device cannot be tried'
fi
# Limits 14, 13 and 8 are those of real-time priority, of nice (20 less its value) and of locked memory.
LD_PRELOAD=/asked.so su member -c true 2> /tmp/asked
grep -x 'asked 14 95 95' /tmp/asked; grep -x 'asked 13 40 40' /tmp/asked
grep -x 'asked 8 18446744073709551615 18446744073709551615' /tmp/asked
LD_PRELOAD=/asked.so su stranger -c true 2> /tmp/asked
if grep -E '^asked (14 [1-9]|13 [1-9])' /tmp/asked; then exit 1; fi
if ! prlimit --rtprio=0:0 prlimit --rtprio=1:1 true; then
    echo 'skip: root may not raise limits here (CAP_SYS_RESOURCE), so a member gets none and what they allow cannot be tried'
elif ! python3 -c 'import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))'; then
    echo 'skip: this kernel gives nobody a real-time priority, so what the limits allow cannot be tried'
else
    for user in member stranger; do
        prlimit --rtprio=0 --nice=0 --memlock=65536 su $user -c "python3 /rights.py $user"
    done
fi
su member -c 'hairspring-perf --version'
if su stranger -c 'hairspring-perf --version'; then exit 1; fi
userdel --remove member 2> /dev/null; userdel --remove stranger 2> /dev/null
# Another user has no perf events.
if setpriv --reuid=nobody --regid=nogroup --clear-groups hairspring-perf --version; then exit 1; fi

# A second installation of the same version changes nothing.
dpkg --install /packages/hairspring-realtime_*.deb
dpkg --purge hairspring-realtime hairspring-doc tcl-hairspring python3-hairspring libhairspring-dev hairspring $(cd /packages && ls libhairspring[0-9]*.deb | cut -d_ -f1) 2> /tmp/purge.err || { cat /tmp/purge.err; exit 1; }
files > /tmp/files.after; accounts > /tmp/accounts.after
diff /tmp/files.before /tmp/files.after
diff /tmp/accounts.before /tmp/accounts.after
echo 'life: whole'
