//! The plain writer's backtrace cache.

use heaptap_trace::Code;

/// One domain's cache.
pub(super) struct PlainCache {
    slots: Vec<Slot>,
    /// Codes that were in neither slot, for their locations to be written.
    pub(super) missed: Vec<Code>,
    next_check: usize,
}

#[derive(Clone, Default)]
struct Slot {
    code: Code,
    date: u64,
    prediction: usize,
}

impl PlainCache {
    pub(super) fn new() -> PlainCache {
        PlainCache { slots: vec![Slot::default(); 16_384], missed: Vec::new(), next_check: 4242 }
    }

    /// Slot, prediction and code for the next packet's header.
    pub(super) fn check(&mut self) -> (u16, u16, u64) {
        let at = self.next_check;
        self.next_check = (at + 5413) % 16_384;
        (at as u16, self.slots[at].prediction as u16, self.slots[at].code)
    }

    /// The entries of a backtrace: their number and their bytes.
    pub(super) fn entries(&mut self, frames: &[Code], id: u64) -> (usize, Vec<u8>) {
        let mut bytes = Vec::new();
        let mut count = 0;
        let mut predictor = 0;
        let mut at = 0;
        // A run of over 255 predictions goes on whatever the room: its next
        // entry is the one that finds there is none.
        let mut run_goes_on = false;
        while at < frames.len() && (run_goes_on || bytes.len() <= 4096 - 10) {
            let code = frames[at];
            at += 1;
            count += 1;
            let (first, second) = homes(code);
            let found = [first, second].into_iter().find(|&slot| self.slots[slot].code == code);
            let older =
                if self.slots[first].date < self.slots[second].date { first } else { second };
            let slot = found.unwrap_or(older);
            self.slots[slot].code = code;
            self.slots[slot].date = id;
            self.slots[predictor].prediction = slot;
            predictor = slot;
            if found.is_none() {
                self.missed.push(code);
                bytes.extend(((slot << 2 | 3) as u16).to_le_bytes());
                bytes.extend(code.to_le_bytes());
                run_goes_on = false;
                continue;
            }
            let mut right = 0;
            // Predictions may take a third byte, for which there must be room.
            let room = bytes.len() + 2 <= 4096 - 10;
            while room && right < 255 && at < frames.len() {
                let next = self.slots[predictor].prediction;
                if self.slots[next].code != frames[at] {
                    break;
                }
                predictor = next;
                at += 1;
                right += 1;
            }
            bytes.extend(((slot << 2 | right.min(2)) as u16).to_le_bytes());
            if right >= 2 {
                bytes.push(right as u8);
            }
            if !room {
                break;
            }
            let next = self.slots[predictor].prediction;
            run_goes_on = right == 255 && frames.get(at) == Some(&self.slots[next].code);
        }
        (count, bytes)
    }
}

/// The two slots that a code can be in, in 63-bit arithmetic.
fn homes(code: Code) -> (usize, usize) {
    let times = |factor: u128| (u128::from(code) % (1 << 63) * factor) % (1 << 63);
    let first = (times(0x498_3723) >> 11) & 16_383;
    let second = (times(0xfde_a731) >> 21) & 16_383;
    (first as usize, second as usize)
}
