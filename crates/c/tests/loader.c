// Loads a test that was compiled as a library, and with it libhairspring, and runs it: loader LIBRARY [ARGUMENTS]. A library that is loaded after the
// program has begun finds the words of its threads in another way than one that was loaded with it.
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments)
{
    void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    int (*run)(int, char **);
    // ISO C converts no pointer to data into one to a function.
    *(void **)&run = library ? dlsym(library, "main") : NULL;
    if (!run) {
        fprintf(stderr, "%s\n", count > 1 ? dlerror() : "usage: loader LIBRARY [ARGUMENTS]");
        return 2;
    }
    return run(count - 1, arguments + 1);
}
