//! What is kept of the latest requests for the next ones.

/// What was made for the latest requests, by what it was made for; the latest used is the last.
pub(crate) struct Kept<K, V>(Vec<(K, V)>);

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Kept(Vec::new())
    }
}

impl<K: PartialEq, V: Clone> Kept<K, V> {
    pub(crate) fn find(&mut self, key: &K) -> Option<V> {
        let place = self.0.iter().position(|(kept, _)| kept == key)?;
        self.0[place..].rotate_left(1);
        self.0.last().map(|(_, value)| value.clone())
    }

    /// Adds one; at most so many stay.
    pub(crate) fn add(&mut self, key: K, value: V, most: usize) {
        if self.0.len() >= most {
            self.0.remove(0);
        }
        self.0.push((key, value));
    }

    /// The one that was made for `key`; if there is none, it is made.
    pub(crate) fn find_or_add(&mut self, key: K, make: impl FnOnce() -> V, most: usize) -> V {
        if let Some(kept) = self.find(&key) {
            return kept;
        }
        let made = make();
        self.add(key, made.clone(), most);
        made
    }

    /// Drops what was made for other things than these.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&K) -> bool) {
        self.0.retain(|(key, _)| is_kept(key));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(K, V)> {
        self.0.iter()
    }

    /// All of them, the latest used last.
    pub(crate) fn all_mut(&mut self) -> &mut Vec<(K, V)> {
        &mut self.0
    }
}
