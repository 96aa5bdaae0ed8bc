//! How system calls are declared.
//!
//! Why it exists: one table declares each call, and its enumeration, its arguments and both directions of its encoding follow from
//! that. What it deliberately does not know: the calls.

/// Declares the calls: the enumeration, their numbers, and both directions of their encoding.
macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident = $number:literal { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* })+) => {
        codes! {
            /// Numbers of the calls.
            Number: u64 { $(#[doc = concat!("See [`Syscall::", stringify!($name), "`].")] $name = $number,)+ }
        }

        /// A request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Syscall { $($(#[$doc])* $name { $($(#[$field_doc])* $field: $kind,)* },)+ }

        /// The arguments of each call, for the code that carries it out.
        pub mod arguments {
            use super::*;
            $(
                $(#[$doc])*
                #[derive(Clone, Copy, Debug, PartialEq, Eq)]
                pub struct $name { $($(#[$field_doc])* pub $field: $kind,)* }
            )+
        }

        /// A request for the code that carries it out: its arguments together.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Call { $($(#[$doc])* $name(arguments::$name),)+ }

        impl From<Syscall> for Call {
            #[inline(always)]
            fn from(call: Syscall) -> Self {
                match call {
                    $(Syscall::$name { $($field,)* } => Call::$name(arguments::$name { $($field,)* }),)+
                }
            }
        }

        impl From<Call> for Syscall {
            #[inline(always)]
            fn from(call: Call) -> Self {
                match call {
                    $(Call::$name(arguments::$name { $($field,)* }) => Syscall::$name { $($field,)* },)+
                }
            }
        }

        impl Syscall {
            /// Passes the words of the request to an action. They never cross a page. If the kind of the call is known at compile
            /// time, nothing is left to decide at run time.
            #[inline(always)]
            pub fn with_words<R>(&self, action: impl FnOnce(&[u64]) -> R) -> R {
                match *self {
                    $(Syscall::$name { $($field,)* } => {
                        let mut words = Aligned([0; 1 $(+ <$kind as Field>::WORDS)*]);
                        words.0[0] = $number;
                        let _rest = &mut words.0[1..];
                        $(
                            let (place, _rest) = _rest.split_at_mut(<$kind as Field>::WORDS);
                            Field::put($field, place);
                        )*
                        action(&words.0)
                    })+
                }
            }

            /// The request as words.
            pub fn encode(&self) -> Words<SYSCALL_WORDS> {
                self.with_words(|request| {
                    let mut words = Words::new();
                    words.push(request);
                    words
                })
            }

            /// Decodes a request and passes it to a handler. Unlike with [`decode`](Self::decode), if the handler is inlined, every
            /// kind of call has its own path: the call is examined once, and is never stored in memory.
            ///
            /// # Errors
            /// As for [`decode`](Self::decode), and those of the handler.
            #[inline(always)]
            pub fn dispatch<H: Handler>(words: &[u64], handler: H) -> Result<H::Output, SyscallError> {
                let mut reader = Reader(words);
                let missing = SyscallError::BadArgument;
                match reader.word().ok_or(missing)? {
                    $($number => handler.handle(Call::$name(arguments::$name { $($field: Field::get(&mut reader).ok_or(missing)?,)* })),)+
                    _ => Err(SyscallError::UnknownCall),
                }
            }
        }
    };
}

pub(crate) use calls;
