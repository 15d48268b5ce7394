use super::*;
use crate::runtimes::ocaml::five::heap::stack_slot::StackTop;
use crate::runtimes::ocaml::five::layout::{STACK_HANDLER, STACK_SP};

/// As in 5.3.
const LAYOUT: ThreadLayout = ThreadLayout {
    domain: 3,
    current_stack: 4,
    local_roots: 6,
    last_exception: 9,
    gc_regs: 10,
    trap_sp_off: 15,
};

/// Words of `struct caml_thread_struct`.
const NEXT: usize = 1;
const PREVIOUS: usize = 2;

/// How many slots each stack of the tests has.
const SLOTS: usize = 2;

/// The threads of a domain in memory: the first one runs.
struct World {
    threads: [[usize; 16]; 3],
    /// Blocks that begin with `Thread.id`.
    descriptors: [[usize; 1]; 3],
    /// `stack_info`, three words that are in use, and the handler.
    stacks: [[usize; 16]; 3],
    /// `caml__roots_block` of the second thread, and its variables.
    local: [usize; 8],
    variables: [usize; 3],
}

const STACK_USED: usize = 8;
const STACK_END: usize = 11;

impl World {
    fn new(domain: u32) -> Box<World> {
        let mut world = Box::new(World {
            threads: [[0; 16]; 3],
            descriptors: [7, 9, 11].map(|id| [id << 1 | 1]),
            stacks: [[0; 16]; 3],
            local: [0; 8],
            variables: [0x100, 0, 0x200],
        });
        let thread = [0, 1, 2].map(|index| world.threads[index].as_ptr() as usize);
        for index in 0..3 {
            let stack = world.stacks[index].as_ptr() as usize;
            world.stacks[index][STACK_SP] = stack + STACK_USED * WORD;
            world.stacks[index][STACK_HANDLER] = stack + STACK_END * WORD;
            let descriptor = world.descriptors[index].as_ptr() as usize;
            let structure = &mut world.threads[index];
            structure[0] = descriptor;
            structure[NEXT] = thread[(index + 1) % 3];
            structure[PREVIOUS] = thread[(index + 2) % 3];
            // An `int`: the other half may have any value.
            structure[LAYOUT.domain] = domain as usize | 0xabcd << 32;
            structure[LAYOUT.current_stack] = stack;
            structure[LAYOUT.last_exception] = 1;
        }
        world.local[1] = 1;
        world.local[2] = 3;
        world.local[3] = world.variables.as_ptr() as usize;
        world.threads[1][LAYOUT.local_roots] = world.local.as_ptr() as usize;
        world
    }

    fn fields(&self, thread: usize) -> Vec<Reported> {
        let fields = [0, LAYOUT.last_exception].map(|index| &raw const self.threads[thread][index]);
        fields.map(|slot| Reported { value: 0, slot: slot as usize }).to_vec()
    }

    fn stack_slots(&self, thread: usize) -> Vec<Reported> {
        slots_of(self.stacks[thread].as_ptr() as usize)
    }

    /// What the library reports: a variable that is 0 is left out.
    fn report(&self) -> Vec<Reported> {
        let variables = [0, 2].map(|index| &raw const self.variables[index] as usize);
        let variables = variables.map(|slot| Reported { value: 0, slot }).to_vec();
        let parts = [
            self.fields(0),
            self.fields(1),
            variables,
            self.stack_slots(1),
            self.fields(2),
            self.stack_slots(2),
        ];
        parts.concat()
    }
}

fn slots_of(stack: usize) -> Vec<Reported> {
    let slot = |index| Reported { value: 0, slot: stack + (STACK_USED + index) * WORD };
    (0..SLOTS).map(slot).collect()
}

#[derive(Debug, PartialEq)]
enum Part {
    Unknown(usize),
    /// Id, local roots, and whether there is a stack.
    Thread(u32, usize, bool),
}

/// The parts of a report that are not empty.
fn parts(reported: &[Reported], domain: i32) -> Vec<Part> {
    let mut all = MappedVec::new(16).unwrap();
    assert!(reported.iter().all(|&root| all.push(root)));
    let report = HookReport { ring: find_ring(&LAYOUT, &all, domain), reported: all };
    let count_stack_slots = |top: StackTop, reported: &[Reported]| {
        reported.starts_with(&slots_of(top.stack)).then_some(SLOTS)
    };
    let structures = ThreadStructures {
        // SAFETY: words of the tests.
        words: unsafe { Words::at_rest() },
        layout: &LAYOUT,
        has_trap_offset: true,
        count_stack_slots: &count_stack_slots,
    };
    let mut parts = Vec::new();
    let visit = &mut |part: HookPart<'_>| {
        parts.push(match part {
            HookPart::Unknown(roots) => Part::Unknown(roots.len()),
            HookPart::Thread(roots) => {
                Part::Thread(roots.id, roots.local.len(), roots.stack.is_some())
            }
        });
        Ok(())
    };
    assert!(report.for_each_part_of(&structures, visit).is_ok());
    parts.retain(|part| *part != Part::Unknown(0));
    parts
}

const RUNNING: Part = Part::Thread(7, 2, false);
const SECOND: Part = Part::Thread(9, 4, true);
const THIRD: Part = Part::Thread(11, 2, true);

#[test]
fn threads_are_found_between_the_roots_of_other_hooks() {
    let world = World::new(3);
    assert_eq!(parts(&world.report(), 3), [RUNNING, SECOND, THIRD]);
    let foreign = |count: usize| vec![Reported { value: 0, slot: 0x1000 }; count];
    let between = [foreign(4), world.report(), foreign(2)].concat();
    let expected = [Part::Unknown(4), RUNNING, SECOND, THIRD, Part::Unknown(2)];
    assert_eq!(parts(&between, 3), expected);
    assert_eq!(parts(&foreign(5), 3), [Part::Unknown(5)]);
    assert_eq!(parts(&[], 3), []);
}

#[test]
fn a_structure_of_another_layout_is_none() {
    let world = World::new(3);
    let whole = Part::Unknown(world.report().len());
    assert_eq!(parts(&world.report(), 2), [whole], "of another domain");
    let mut world = World::new(3);
    world.threads[2][PREVIOUS] = 0x1000;
    let whole = Part::Unknown(world.report().len());
    assert_eq!(parts(&world.report(), 3), [whole], "no ring");
}

#[test]
fn a_thread_whose_slots_differ_is_not_believed() {
    let world = World::new(0);
    let report = world.report();
    // A slot of the second thread is reported once more, or not at all, or elsewhere.
    for at in 4..8 {
        let mut twice = report.clone();
        twice.insert(at, report[at]);
        assert_eq!(parts(&twice, 0), [RUNNING, Part::Unknown(7), THIRD], "{at} twice");
        let mut missing = report.clone();
        missing.remove(at);
        assert_eq!(parts(&missing, 0), [RUNNING, Part::Unknown(5), THIRD], "without {at}");
        let mut moved = report.clone();
        moved[at].slot += WORD;
        assert_eq!(parts(&moved, 0), [RUNNING, Part::Unknown(6), THIRD], "{at} elsewhere");
    }
    // After the last thread come the roots of other hooks.
    let last = report.len() - 1;
    assert_eq!(parts(&report[..last], 0), [RUNNING, SECOND, Part::Unknown(3)]);
}

#[test]
fn a_stack_that_cannot_be_read_is_not_believed() {
    for change in [
        |world: &mut World| world.threads[1][LAYOUT.current_stack] = 8,
        |world: &mut World| world.stacks[1][STACK_HANDLER] = 1 << 60,
        |world: &mut World| world.stacks[1][STACK_SP] = 0,
        |world: &mut World| world.stacks[1][STACK_SP] += 1,
        |world: &mut World| world.stacks[1][STACK_END + 3] = 8,
        |world: &mut World| world.threads[1][LAYOUT.local_roots] = 8,
        |world: &mut World| world.local[1] = 6,
        |world: &mut World| world.local[0] = world.local.as_ptr() as usize,
    ] {
        let mut world = World::new(0);
        change(&mut world);
        let report = std::hint::black_box(&world).report();
        assert_eq!(parts(&report, 0), [RUNNING, Part::Unknown(6), THIRD]);
    }
}

#[test]
fn a_thread_that_has_not_begun_has_no_id() {
    let mut world = World::new(0);
    world.threads[2][0] = 1;
    assert_eq!(
        parts(&std::hint::black_box(&world).report(), 0),
        [RUNNING, SECOND, Part::Unknown(4)]
    );
}
