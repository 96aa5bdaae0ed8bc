//! Words between activities: they are put into their places, and listeners get them in turn.
//!
//! Why it exists: an activity with many words must not delay activities with few. What it deliberately does not know: what the
//! words mean.

use crate::activity::Activities;

/// A word or notice for an activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A word from its creator.
    Told(u64),
    /// A word from an activity that it created: number, the creator's selector, and the word.
    Said(u16, u16, u64),
    /// The next of its notices.
    Notice,
}

impl Activities {
    /// An activity sends a word to its creator.
    pub fn say(&mut self, id: u16, topic: usize, word: u64) {
        let creator = self.get(id).map(|activity| activity.creator);
        if let (Some(creator), Some(post)) = (creator, self.post(id)) {
            post.said.put(topic, word);
            self.speak(creator, id);
        }
    }

    /// Puts an activity last in its creator's list, unless it is there already.
    fn speak(&mut self, creator: u16, id: u16) {
        let Some((first, last)) = self.post(creator).map(|post| post.speakers) else {
            return;
        };
        let Some(post) = self.post(id).filter(|post| post.neighbours.is_none()) else {
            return;
        };
        post.neighbours = Some((last, 0));
        self.neighbour(last, |(_, after)| *after = id);
        if let Some(listener) = self.post(creator) {
            listener.speakers = (if first == 0 { id } else { first }, id);
        }
    }

    fn neighbour(&mut self, id: u16, change: impl FnOnce(&mut (u16, u16))) {
        let found = self.post(id).and_then(|post| post.neighbours.as_mut());
        if let Some(neighbours) = found {
            change(neighbours);
        }
    }

    /// An activity has no more pending words.
    pub fn hush(&mut self, id: u16) {
        let creator = self.get(id).map_or(0, |activity| activity.creator);
        let neighbours = self.post(id).and_then(|post| post.neighbours.take());
        let Some((before, after)) = neighbours else {
            return;
        };
        self.neighbour(before, |(_, next)| *next = after);
        self.neighbour(after, |(previous, _)| *previous = before);
        if let Some(listener) = self.post(creator) {
            let (first, last) = &mut listener.speakers;
            if *first == id {
                *first = after;
            }
            if *last == id {
                *last = before;
            }
        }
    }

    /// The next word or notice for an activity. This delivers a word, but not a notice. Words from its creator, words from its
    /// children, and notices take turns, and so do all children with words.
    pub fn hear(&mut self, id: u16) -> Option<Heard> {
        for _ in 0..3 {
            let post = self.post(id)?;
            post.turn = (post.turn + 1) % 3;
            let heard = match post.turn {
                0 => post.told.take().map(Heard::Told),
                1 => {
                    let speaker = post.speakers.0;
                    self.listen(id, speaker)
                }
                _ => (!post.notices.is_empty()).then_some(Heard::Notice),
            };
            if heard.is_some() {
                return heard;
            }
        }
        None
    }

    fn listen(&mut self, creator: u16, speaker: u16) -> Option<Heard> {
        let selector = self.get(speaker)?.selector;
        let said = &mut self.post(speaker)?.said;
        let (word, more) = (said.take(), !said.is_empty());
        self.hush(speaker);
        if more {
            self.speak(creator, speaker);
        }
        Some(Heard::Said(speaker, selector, word?))
    }

    /// Number of undelivered words, for the books.
    pub fn unheard(&self) -> usize {
        let posts = self.living().map(|(_, post)| post);
        posts
            .map(|post| {
                let words = [!post.told.is_empty(), !post.said.is_empty()];
                words.into_iter().filter(|is| *is).count() + usize::from(!post.notices.is_empty())
            })
            .sum()
    }
}
