//! The probabilities with which blocks are coded, in step on both sides.

use heaptap_codec::range::{EVEN, Probability};

use super::target::{ORDINALS, PointerSlot, Targets};

/// What is known about the next head, and the next target, from those before. All zeros is
/// valid memory; [`BlockModel::clear`] makes it the beginning of a chunk.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct BlockModel {
    /// The two heads before.
    heads: [u8; 2],
    /// Whether there is a gap before a block, by the head before.
    gap: [Probability; 256],
    /// The head that followed two others the last time, by their hash.
    expected_heads: [u8; 1 << 12],
    /// Whether it follows again, by the head before.
    is_expected_head: [Probability; 256],
    /// Which other head it is, by the head before.
    head_trees: [[Probability; 256]; 256],
    /// The symbol of the last target, by the shape and the pointer's ordinal.
    expected_symbols: [[u8; ORDINALS]; 256],
    is_expected_symbol: [[Probability; ORDINALS]; 256],
    /// Which other symbol it is, by the shape.
    symbol_trees: [[Probability; 256]; 256],
    /// Whether the next pointer of a big block is in the next field.
    pub(crate) is_next_field: Probability,
    pub(crate) targets: Targets,
}

/// What a symbol is coded with: the expected one, its probability, and the tree for any other.
pub(crate) struct Expectation<'a> {
    pub(crate) symbol: &'a mut u8,
    pub(crate) is_right: &'a mut Probability,
    pub(crate) tree: &'a mut [Probability; 256],
}

impl BlockModel {
    pub(crate) const EMPTY: BlockModel = BlockModel {
        heads: [0; 2],
        gap: [EVEN; 256],
        expected_heads: [0; 1 << 12],
        is_expected_head: [EVEN; 256],
        head_trees: [[EVEN; 256]; 256],
        expected_symbols: [[0; ORDINALS]; 256],
        is_expected_symbol: [[EVEN; ORDINALS]; 256],
        symbol_trees: [[EVEN; 256]; 256],
        is_next_field: EVEN,
        targets: Targets::EMPTY,
    };

    pub(crate) fn clear(&mut self) {
        self.heads = [0; 2];
        self.gap.fill(EVEN);
        self.expected_heads.fill(0);
        self.is_expected_head.fill(EVEN);
        self.head_trees.as_flattened_mut().fill(EVEN);
        self.expected_symbols.as_flattened_mut().fill(0);
        self.is_expected_symbol.as_flattened_mut().fill(EVEN);
        self.symbol_trees.as_flattened_mut().fill(EVEN);
        self.is_next_field = EVEN;
        self.targets.clear();
    }

    #[inline]
    pub(crate) fn gap(&mut self) -> Option<&mut Probability> {
        self.gap.get_mut(usize::from(self.heads[0]))
    }

    #[inline]
    pub(crate) fn head(&mut self) -> Option<Expectation<'_>> {
        let [before, earlier] = self.heads.map(usize::from);
        let hash = ((before << 4) ^ earlier) & 0xfff;
        Some(Expectation {
            symbol: self.expected_heads.get_mut(hash)?,
            is_right: self.is_expected_head.get_mut(before)?,
            tree: self.head_trees.get_mut(before)?,
        })
    }

    /// To be called with each head after it was coded.
    #[inline]
    pub(crate) fn saw_head(&mut self, head: u8) {
        self.heads = [head, self.heads[0]];
    }

    #[inline]
    pub(crate) fn target(&mut self, slot: PointerSlot) -> Option<Expectation<'_>> {
        let (shape, ordinal) = (usize::from(slot.shape), slot.ordinal.min(ORDINALS - 1));
        Some(Expectation {
            symbol: self.expected_symbols.get_mut(shape)?.get_mut(ordinal)?,
            is_right: self.is_expected_symbol.get_mut(shape)?.get_mut(ordinal)?,
            tree: self.symbol_trees.get_mut(shape)?,
        })
    }
}
