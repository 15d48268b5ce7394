# The code that runs in the program, called as caml_minor_gc_begin_hook: void (*)(void), under the
# master lock. Position independent. Constants and strings follow it, the state that it changes is
# elsewhere; their fields are the operands in braces (stub/words.rs).
#
# rbx: the constants. r13: the state. r12: the stack that was mapped. r15: the status to leave.
# rbp: the program's stack.

    .pushsection .rodata.heaptap_inject_stub, "a"
    .globl heaptap_inject_stub, heaptap_inject_stub_end
    .hidden heaptap_inject_stub, heaptap_inject_stub_end
    .balign 16
heaptap_inject_stub:
    endbr64
    push rbx
    push rbp
    push r12
    push r13
    push r15
    lea rbx, [rip + 90f]
    mov r13, [rbx + {state}]

    # Once only. A call that comes when all is over, or was undone, passes on to the earlier hook.
    mov eax, {armed}
    mov ecx, {entered}
    lock cmpxchg [r13 + {status}], rcx
    jne 80f

    # Put the hook back. If somebody else has set it meanwhile, it calls us for ever: we stay.
    mov rdx, [rbx + {hook}]
    lea rax, [rip + heaptap_inject_stub]
    mov rcx, [rbx + {earlier}]
    lock cmpxchg [rdx], rcx
    je 10f
    mov qword ptr [r13 + {chained}], 1
10:
    # A child that was forked meanwhile is not the program that was meant.
    mov r15d, {abandoned}
    mov eax, {sys_getpid}
    syscall
    cmp rax, [rbx + {pid}]
    jne 70f
    # Nor does anybody wait after the deadline.
    sub rsp, 16
    mov eax, {sys_clock_gettime}
    xor edi, edi
    mov rsi, rsp
    syscall
    mov rax, [rsp]
    add rsp, 16
    cmp rax, [rbx + {deadline}]
    ja 70f

    # A stack of our own, with a page below it that is not mapped.
    mov r15d, {no_stack}
    mov eax, {sys_mmap}
    xor edi, edi
    mov esi, {stack_size}
    xor edx, edx
    mov r10d, {map_flags}
    mov r8, -1
    xor r9d, r9d
    syscall
    cmp rax, -4096
    ja 70f
    mov r12, rax
    lea rdi, [rax + 4096]
    mov esi, {stack_size} - 4096
    mov edx, {read_write}
    mov eax, {sys_mprotect}
    syscall
    test rax, rax
    jne 60f
    mov rbp, rsp
    lea rsp, [r12 + {stack_size}]

    call [rbx + {errno_location}]
    mov ecx, [rax]
    push rax
    push rcx

    mov qword ptr [r13 + {status}], {loading}
    mov rdi, [rbx + {library}]
    mov esi, {rtld_now}
    call [rbx + {dlopen}]
    mov r15d, {not_loaded}
    test rax, rax
    je 40f
    mov rdi, rax
    mov rsi, [rbx + {entry}]
    call [rbx + {dlsym}]
    mov r15d, {no_entry}
    test rax, rax
    je 40f
    mov qword ptr [r13 + {status}], {calling}
    mov rdi, [rbx + {argument}]
    mov rsi, [rbx + {message}]
    mov rdx, [rbx + {message_room}]
    call rax
    mov [r13 + {result}], eax
    mov r15d, {returned}
    jmp 50f

    # Keep what the loader says.
40:
    call [rbx + {dlerror}]
    test rax, rax
    je 50f
    mov rsi, rax
    mov rdi, [rbx + {message}]
    mov rcx, [rbx + {message_room}]
45:
    dec rcx
    js 50f
    lodsb
    stosb
    test al, al
    jne 45b

50:
    pop rcx
    pop rax
    mov [rax], ecx
    mov rsp, rbp
60:
    mov rdi, r12
    mov esi, {stack_size}
    mov eax, {sys_munmap}
    syscall
70:
    mov [r13 + {status}], r15
80:
    mov rax, [rbx + {earlier}]
    pop r15
    pop r13
    pop r12
    pop rbp
    pop rbx
    test rax, rax
    je 85f
    jmp rax
85:
    ret
    .balign 8
90:
heaptap_inject_stub_end:
    .popsection
