//! The walk against a machine that knows its own stack, and against the naive walk.

#![allow(unsafe_code, reason = "the machine adds tables")]

mod machine;
mod oracle;
mod test_formats;

use proptest::prelude::*;

use super::super::paint::stack_used;
use super::outward::INDEX_LOOKUPS;
use super::records::{MIN_STREAK, Streak};
use super::walker::SMALL_RETRY;
use super::*;
use machine::{CODES, Format, LATE, Machine};

#[derive(Clone, Debug)]
enum Action {
    Push { code: usize, times: usize },
    PushLate,
    Pop(usize),
    Callback { boundary: usize, gap: u64, region: Option<u64> },
    Swap { depth: usize, code: usize },
    Dirty(usize),
    Recall(usize),
    Suspend,
    Resume(usize),
    AddLate,
    Label(Option<u64>),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => (0..CODES.len(), prop_oneof![3 => 1..5_usize, 1 => 5..60_usize]).prop_map(|(code, times)| Action::Push { code, times }),
        1 => Just(Action::PushLate),
        4 => prop_oneof![3 => 1..9_usize, 1 => 9..70_usize].prop_map(Action::Pop),
        3 => (0..2_usize, 0..4_u64, prop::option::of(0..5_u64))
            .prop_map(|(boundary, gap, region)| Action::Callback { boundary, gap, region }),
        2 => (any::<usize>(), 0..CODES.len())
            .prop_map(|(depth, code)| Action::Swap { depth, code }),
        1 => any::<usize>().prop_map(Action::Dirty),
        2 => any::<usize>().prop_map(Action::Recall),
        2 => Just(Action::Suspend),
        3 => any::<usize>().prop_map(Action::Resume),
        1 => Just(Action::AddLate),
        1 => prop::option::of(1..3_u64).prop_map(Action::Label),
    ]
}

fn format() -> impl Strategy<Value = Format> {
    prop_oneof![
        Just(Format::Neutral),
        Just(Format::NeutralHidden),
        Just(Format::Contexts),
        Just(Format::Fibers)
    ]
}

fn act(machine: &mut Machine, label: &mut Option<u64>, action: &Action) {
    match *action {
        Action::Push { code, times } => (0..times).for_each(|_| machine.push(CODES[code])),
        Action::PushLate => machine.push(LATE),
        Action::Pop(count) => machine.pop(count),
        Action::Callback { boundary, gap, region } => machine.callback(boundary, gap, region),
        Action::Swap { depth, code } => machine.swap(depth, CODES[code]),
        Action::Dirty(depth) => machine.dirty(depth),
        Action::Recall(depth) => machine.recall(depth),
        Action::Suspend => machine.suspend(),
        Action::Resume(stack) => machine.resume(stack),
        Action::AddLate => machine.add_late(),
        Action::Label(new) => *label = new,
    }
}

fn walker(max_frames: usize) -> Walker<Vec<u64>> {
    // Garbage behind the cache, where the storage's state must not matter.
    let mut word = 0;
    let storage = |words| Some(vec![std::mem::replace(&mut word, 0x5001); words]);
    Walker::new(max_frames, storage, |words| Some(vec![0x5001; words]))
        .expect("as large as asked for")
}

/// What the receiver of the walks has made of them.
struct Receiver {
    stack: Vec<u64>,
    /// Whether the last walk reached it.
    in_step: bool,
}

impl Receiver {
    fn receive(&mut self, walk: &Walk<'_>) {
        self.stack.truncate(walk.prefix);
        assert_eq!(self.stack.len(), walk.prefix);
        let Range { start, end } = walk.repeated;
        self.stack.extend(&walk.fresh[..start]);
        for _ in start..end {
            self.stack.push(*self.stack.last().expect("a frame that is repeated"));
        }
        self.stack.extend(&walk.fresh[end..]);
    }
}

fn common(a: &[u64], b: &[u64]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn labelled(label: Option<u64>) -> Markers {
    Markers { label: label_code(label).unwrap_or(0), ..Markers::default() }
}

/// Stands for the frames beyond the limit; no frame has it.
const CUT: u64 = 99 << 50;

/// A label's code; no frame has it.
fn label_code(label: Option<u64>) -> Option<u64> {
    label.map(|label| label << 40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn walks_find_what_the_machine_has(
        format in format(),
        actions in prop::collection::vec((action(), 0..6_u8), 1..80),
    ) {
        let mut machine = Machine::new(format);
        let mut walker = walker(1000);
        let mut codes = [0; SMALL_STACK];
        let mut receiver = Receiver { stack: Vec::new(), in_step: true };
        let mut label = None;
        for (action, weight) in actions {
            act(&mut machine, &mut label, &action);
            if weight == 0 {
                continue;
            }
            let expected: Vec<_> = label_code(label).into_iter().chain(machine.codes()).collect();
            let (memory, start) = (&machine.memory, machine.start());
            if weight > 3
                && walker.expects_small()
                && let Some(count) =
                    walker.walk_small_in(memory, &machine.tables, start, &mut codes)
            {
                let found: Vec<_> = codes[..count].iter().rev().copied().collect();
                prop_assert_eq!(found, machine.codes());
                receiver = Receiver { stack: expected, in_step: false };
                continue;
            }
            let walk = walker.walk_in(memory, &machine.tables, start, labelled(label));
            let known = if machine.is_known() { End::Complete } else { End::Unknown };
            prop_assert_eq!(walk.end, known);
            prop_assert_eq!(walk.depth(), expected.len());
            let shared = common(&receiver.stack, &expected);
            if receiver.in_step {
                prop_assert_eq!(walk.prefix, shared);
            }
            prop_assert!(walk.prefix <= shared);
            if weight == 1 {
                let prefix = walk.prefix;
                walker.rewind(prefix);
                receiver.in_step = false;
            } else {
                receiver.receive(&walk);
                receiver.in_step = true;
                prop_assert_eq!(&receiver.stack, &expected);
            }
            assert_streaks_are(&walker);
        }
    }

    #[test]
    fn cut_walks_find_the_innermost_frames(
        format in format(),
        max_frames in 4..60_usize,
        actions in prop::collection::vec(action(), 1..80),
    ) {
        let mut machine = Machine::new(format);
        let mut walker = walker(max_frames);
        let mut receiver = Receiver { stack: Vec::new(), in_step: true };
        let mut label = None;
        for action in actions {
            act(&mut machine, &mut label, &action);
            let marks = Markers { cut: CUT, ..labelled(label) };
            let walk = walker.walk_in(&machine.memory, &machine.tables, machine.start(), marks);
            let end = walk.end;
            receiver.receive(&walk);
            assert_streaks_are(&walker);
            let all = machine.codes();
            let marks: Vec<_> =
                label_code(label).into_iter().chain((end == End::Cut).then_some(CUT)).collect();
            let (outer, frames) = receiver.stack.split_at(marks.len());
            prop_assert_eq!(outer, marks);
            let depth = frames.len();
            prop_assert!(depth <= max_frames);
            prop_assert_eq!(frames, &all[all.len() - depth..]);
            if end == End::Cut {
                prop_assert!(depth >= max_frames / 2);
            } else {
                prop_assert_eq!(depth, all.len());
            }
        }
    }

    #[test]
    fn accepted_walks_are_compared_by_code(
        stacks in prop::collection::vec(prop::collection::vec(1..4_u64, 0..12), 1..20),
    ) {
        let mut walker = walker(8);
        let mut receiver = Receiver { stack: Vec::new(), in_step: true };
        for stack in stacks {
            let mut innermost_first: Vec<_> = stack.iter().rev().copied().collect();
            let walk = walker.accept(&mut innermost_first, stack.len(), Markers::default());
            let expected = &stack[stack.len().saturating_sub(8)..];
            prop_assert_eq!(walk.end == End::Cut, stack.len() > 8);
            prop_assert_eq!(walk.prefix, common(&receiver.stack, expected));
            receiver.receive(&walk);
            prop_assert_eq!(&receiver.stack[..], expected);
        }
    }
}

/// Each recorded streak describes its frames.
fn assert_streaks_are(walker: &Walker<Vec<u64>>) {
    let mut before = 0;
    for Streak { outer, end, stride } in walker.last.streaks.iter() {
        assert!(before <= outer && outer + MIN_STREAK <= end && end <= walker.last.frames);
        let at = &walker.last.witnesses[outer..end];
        let codes = &walker.last.codes[MARKERS..][outer..end];
        assert!(at.windows(2).all(|at| at[0] == at[1] + stride && at[0] % 8 == 0));
        assert!(codes.iter().all(|code| *code == codes[0]));
        before = end;
    }
}

/// How many frames of the last walk the next one keeps.
fn kept(walker: &mut Walker<Vec<u64>>, machine: &Machine) -> usize {
    walker.walk_outwards(&machine.memory, &machine.tables, machine.start()).kept
}

#[test]
fn unchanged_frames_are_kept_in_every_format() {
    for format in [Format::Neutral, Format::NeutralHidden, Format::Contexts, Format::Fibers] {
        for region in [None, Some(3)] {
            let mut machine = Machine::new(format);
            let mut walker = walker(1000);
            (0..30).for_each(|_| machine.push(CODES[0]));
            machine.callback(0, 2, region);
            (0..10).for_each(|_| machine.push(CODES[3]));
            walker.walk_in(&machine.memory, &machine.tables, machine.start(), Markers::default());
            let shown = usize::from(format == Format::Neutral);
            assert_eq!(kept(&mut walker, &machine), 40 + 2 * shown, "{format:?} {region:?}");
            machine.pop(5);
            (0..5).for_each(|_| machine.push(CODES[4]));
            assert_eq!(kept(&mut walker, &machine), 35 + 2 * shown, "{format:?} {region:?}");
            // Another fiber, or callback, from the same caller.
            machine.pop(11);
            machine.callback(1, 3, region.map(|_| 1));
            machine.push(CODES[4]);
            // A few frames may be new before one is found that is not in the index.
            let kept = kept(&mut walker, &machine);
            let expected = 30 + shown - INDEX_LOOKUPS..=30 + shown;
            assert!(expected.contains(&kept), "{kept} {format:?} {region:?}");
        }
    }
}

#[test]
fn stacks_that_take_turns_are_kept() {
    for format in [Format::Neutral, Format::NeutralHidden, Format::Contexts, Format::Fibers] {
        for stacks in 2..=4 {
            let mut machine = Machine::new(format);
            let mut walker = walker(1000);
            (0..10).for_each(|_| machine.push(CODES[0]));
            for stack in 0..stacks {
                machine.suspend();
                machine.callback(0, 0, Some(4 - stack));
                (0..20 + stack).for_each(|frame| machine.push(CODES[frame as usize % 6]));
            }
            for turn in 0..4 * stacks {
                machine.suspend();
                machine.resume(0);
                let start = machine.start();
                let depth = machine.codes().len();
                let walk =
                    walker.walk_in(&machine.memory, &machine.tables, start, Markers::default());
                assert_eq!((walk.depth(), walk.end), (depth, End::Complete));
                if turn >= stacks {
                    assert_eq!(walker.new.count, 0, "{format:?}, {stacks} stacks, turn {turn}");
                }
            }
        }
    }
}

#[test]
fn indirect_frames_are_kept_too() {
    for format in [Format::Neutral, Format::Contexts] {
        let mut machine = Machine::new(format);
        let mut walker = walker(1000);
        (0..40).for_each(|_| machine.push(CODES[0]));
        machine.callback(0, 2, None);
        machine.push(CODES[3]);
        machine.dirty(0);
        walker.walk_in(&machine.memory, &machine.tables, machine.start(), Markers::default());
        assert_eq!(kept(&mut walker, &machine), machine.codes().len());
    }
}

#[test]
fn a_change_far_out_is_seen() {
    let mut machine = Machine::new(Format::Contexts);
    let mut walker = walker(1000);
    (0..100).for_each(|_| machine.push(CODES[0]));
    walker.walk_in(&machine.memory, &machine.tables, machine.start(), Markers::default());
    machine.swap(50, CODES[1]);
    let walk =
        walker.walk_in(&machine.memory, &machine.tables, machine.start(), Markers::default());
    assert_eq!((walk.prefix, walk.fresh.len()), (50, 50));
    assert_eq!(walk.fresh, &machine.codes()[50..]);
}

#[test]
fn a_recursion_is_one_streak() {
    let mut machine = Machine::new(Format::Contexts);
    let mut walker = walker(1000);
    // However it grew, and whatever changed at its end.
    for frames in [100, 1, 1, 30, 7, 200] {
        machine.push(CODES[1]);
        walker.walk_in(&machine.memory, &machine.tables, machine.start(), Markers::default());
        machine.pop(1);
        (0..frames).for_each(|_| machine.push(CODES[0]));
    }
    machine.push(CODES[1]);
    let walk =
        walker.walk_in(&machine.memory, &machine.tables, machine.start(), Markers::default());
    assert_eq!((walk.prefix, walk.fresh.len()), (139, 201));
    assert_eq!(walk.repeated, 0..200);
    let streaks: Vec<_> = walker.last.streaks.iter().collect();
    assert_eq!(streaks, [Streak { outer: 0, end: 339, stride: 16 }]);
}

#[test]
fn a_change_within_a_streak_is_seen() {
    for depth in [0, 1, 7, 8, 16, 50, 97, 98, 99] {
        let mut machine = Machine::new(Format::Contexts);
        let mut walker = walker(1000);
        (0..100).for_each(|_| machine.push(CODES[0]));
        walker.walk_in(&machine.memory, &machine.tables, machine.start(), Markers::default());
        machine.swap(depth, CODES[1]);
        let walk =
            walker.walk_in(&machine.memory, &machine.tables, machine.start(), Markers::default());
        assert_eq!((walk.prefix, walk.fresh.len()), (depth, 100 - depth));
        assert_eq!(walk.fresh, &machine.codes()[depth..]);
        assert_streaks_are(&walker);
    }
}

#[test]
fn a_small_stack_is_tried_until_it_has_grown() {
    for format in [Format::Neutral, Format::NeutralHidden, Format::Contexts, Format::Fibers] {
        let mut machine = Machine::new(format);
        let mut walker = walker(1000);
        let mut codes = [0; SMALL_STACK];
        let mut small = |walker: &mut Walker<Vec<u64>>, machine: &Machine| {
            let start = machine.start();
            let expected = walker.expects_small();
            expected.then(|| {
                walker.walk_small_in(&machine.memory, &machine.tables, start, &mut codes)
            })?
        };
        let shown = usize::from(format == Format::Neutral);
        (0..SMALL_STACK - shown).for_each(|at| machine.push(CODES[at % CODES.len()]));
        assert_eq!(small(&mut walker, &machine), Some(SMALL_STACK), "{format:?}");
        // That another walk was asked for says nothing.
        walker.walk_in(&machine.memory, &machine.tables, machine.start(), Markers::default());
        assert_eq!(small(&mut walker, &machine), Some(SMALL_STACK), "{format:?}");
        machine.push(CODES[0]);
        assert_eq!(small(&mut walker, &machine), None, "{format:?}");
        walker.walk_in(&machine.memory, &machine.tables, machine.start(), Markers::default());
        machine.pop(2);
        assert_eq!(small(&mut walker, &machine), None, "{format:?}");
        let walk =
            walker.walk_in(&machine.memory, &machine.tables, machine.start(), Markers::default());
        assert_eq!((walk.prefix, walk.fresh.len()), (SMALL_STACK - 1, 0), "{format:?}");
        assert_eq!(small(&mut walker, &machine), Some(SMALL_STACK - 1), "{format:?}");
        // What is in several chunks is not small, and is not tried again soon.
        machine.callback(0, 2, None);
        machine.pop(1);
        machine.callback(0, 2, None);
        assert_eq!(small(&mut walker, &machine), None, "{format:?}");
        for _ in 0..SMALL_RETRY {
            assert!(!walker.expects_small(), "{format:?}");
            assert_eq!(small(&mut walker, &machine), None, "{format:?}");
            walker.walk_in(&machine.memory, &machine.tables, machine.start(), Markers::default());
        }
        assert!(walker.expects_small(), "{format:?}");
    }
}

#[test]
fn senseless_starts_end_at_once() {
    let machine = Machine::new(Format::Neutral);
    let mut walker = walker(1000);
    let mut walk = |return_address, sp| {
        let start = Start { return_address, sp };
        let walk = walker.walk_in(&machine.memory, &machine.tables, start, Markers::default());
        (walk.depth(), walk.end)
    };
    assert_eq!(walk(0, 0), (0, End::Complete));
    assert_eq!(walk(0x5001, 0), (0, End::Broken));
    assert_eq!(walk(0x5001, 0x10_0004), (0, End::Broken));
    assert_eq!(walk(0x9999, 0x10_0008), (0, End::Unknown));
    assert_eq!(walk(0x5001, u64::MAX - 7), (0, End::Broken));
    assert_eq!(walk(0x5001, 1 << 63), (1, End::Broken));
}

#[test]
fn a_crossing_that_leads_back_to_itself_ends() {
    let mut machine = Machine::new(Format::NeutralHidden);
    machine.callback(0, 0, None);
    let start = machine.start();
    let at = usize::try_from((start.sp - machine.memory.base) / 8).expect("in memory");
    machine.memory.words[at] = start.sp;
    machine.memory.words[at + 1] = start.return_address;
    let mut walker = walker(100);
    for _ in 0..3 {
        let walk = walker.walk_in(&machine.memory, &machine.tables, start, Markers::default());
        assert_eq!((walk.depth(), walk.end), (0, End::Cut));
    }
}

#[test]
fn a_walk_needs_little_stack() {
    let mut machine = Machine::new(Format::Contexts);
    (0..30).for_each(|_| machine.push(CODES[0]));
    machine.callback(0, 2, None);
    (0..30).for_each(|_| machine.push(CODES[3]));
    let mut walker = walker(1000);
    walker.walk_in(&machine.memory, &machine.tables, machine.start(), Markers::default());
    machine.swap(40, CODES[4]);
    let used = stack_used(&mut || {
        walker.walk_in(&machine.memory, &machine.tables, machine.start(), Markers::default());
    });
    println!("stack used by a walk: {used} bytes");
    let allowed = if cfg!(debug_assertions) { 8 << 10 } else { 1024 };
    assert!(used <= allowed, "{used} bytes");
}

#[test]
fn storage_that_is_too_small_is_refused() {
    for refused in 0..10 {
        for too_few in 0..2 {
            let mut asked = 0;
            let storage = |words| {
                asked += 1;
                (too_few != 0 || asked != refused + 1)
                    .then(|| vec![0_u64; words - usize::from(asked == refused + 1)])
            };
            let walker = Walker::new(100, storage, |_| None);
            assert!(walker.is_none(), "{refused}");
        }
    }
    assert!(Walker::new(100, |words| Some(vec![0; words]), |_| None).is_some());
}
