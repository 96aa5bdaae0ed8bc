//! Words between activities: they find their places, and listeners hear them in turn.
//!
//! Why it exists: an activity that says much must not make others wait that say little. What it deliberately does not know: what the words
//! mean.

use crate::activity::Activities;

/// Something that an activity hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// What it is told.
    Told(u64),
    /// What one that it created says: number, the creator's selector, and what.
    Said(u16, u16, u64),
    /// The next of its notices.
    Notice,
}

impl Activities {
    /// An activity says a word to who created it.
    pub fn say(&mut self, id: u16, topic: usize, word: u64) {
        let Some(activity) = self.quiet(id) else {
            return;
        };
        activity.post.said.put(topic, word);
        let creator = activity.creator;
        self.speak(creator, id);
    }

    /// An activity stands last in the list of its creator, unless it is there already.
    fn speak(&mut self, creator: u16, id: u16) {
        let Some(listener) = self.get(&creator) else {
            return;
        };
        let (first, last) = listener.post.speakers;
        let Some(activity) = self.quiet(id) else {
            return;
        };
        if activity.post.neighbours.is_some() {
            return;
        }
        activity.post.neighbours = Some((last, 0));
        self.neighbour(last, |(_, after)| *after = id);
        if let Some(listener) = self.quiet(creator) {
            listener.post.speakers = (if first == 0 { id } else { first }, id);
        }
    }

    fn neighbour(&mut self, id: u16, change: impl FnOnce(&mut (u16, u16))) {
        let found = self.quiet(id).and_then(|a| a.post.neighbours.as_mut());
        if let Some(neighbours) = found {
            change(neighbours);
        }
    }

    /// An activity has nothing to say any more.
    pub fn hush(&mut self, id: u16) {
        let Some(activity) = self.quiet(id) else {
            return;
        };
        let creator = activity.creator;
        let Some((before, after)) = activity.post.neighbours.take() else {
            return;
        };
        self.neighbour(before, |(_, next)| *next = after);
        self.neighbour(after, |(previous, _)| *previous = before);
        if let Some(listener) = self.quiet(creator) {
            let (first, last) = &mut listener.post.speakers;
            if *first == id {
                *first = after;
            }
            if *last == id {
                *last = before;
            }
        }
    }

    /// What an activity hears next; it is heard by that, but for a notice. What it is told, what is said, and what has ended or is offered
    /// have their turns, and so have all who say something.
    pub fn hear(&mut self, id: u16) -> Option<Heard> {
        for _ in 0..3 {
            let post = &mut self.quiet(id)?.post;
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
        let activity = self.quiet(speaker)?;
        let (selector, said) = (activity.selector, &mut activity.post.said);
        let (word, more) = (said.take(), !said.is_empty());
        self.hush(speaker);
        if more {
            self.speak(creator, speaker);
        }
        Some(Heard::Said(speaker, selector, word?))
    }

    /// What is not heard yet: for the books.
    pub fn unheard(&self) -> usize {
        let posts = self.values().map(|activity| &activity.post);
        posts
            .map(|post| {
                let words = [!post.told.is_empty(), !post.said.is_empty()];
                words.into_iter().filter(|is| *is).count() + usize::from(!post.notices.is_empty())
            })
            .sum()
    }
}
