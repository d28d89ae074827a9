//! The doors for Node. What JavaScript makes of them: `worker/src/hashing/native.ts`.

use std::sync::OnceLock;

use napi::bindgen_prelude::{AsyncTask, Either, Function, Uint8Array};
use napi::threadsafe_function::ThreadsafeFunctionCallMode;
use napi::{Env, Error, Result, Status, Task};
use napi_derive::napi;
use zeroize::Zeroizing;

use crate::calls::{Call, Outcome};
use crate::profile::Profile;
use crate::stored::Stored;
use crate::system::keep_no_large_memory;
use crate::threads::{Threads, Took};

/// Measured once a process. Each engine then learns from its own batches.
static PROFILE: OnceLock<Profile> = OnceLock::new();

/// The best widths and code on this processor.
#[napi(object, js_name = "Profile")]
pub struct FoundProfile {
    /// How many bcrypt hashes are fastest together; 0 where the known answers were not right.
    pub bcrypt_width: u32,
    /// The kind of code for bcrypt.
    pub bcrypt_code: String,
    /// How many argon2 hashes of a few megabytes are done together.
    pub argon2_width: u32,
    /// The kind of code for argon2.
    pub argon2_code: String,
    /// How many PBKDF2 hashes of one block are fastest together; 0 without code for this processor.
    pub pbkdf2_width: u32,
    /// The kind of code for PBKDF2.
    pub pbkdf2_code: String,
    /// The same for scrypt of up to 16 MiB.
    pub scrypt_width: u32,
    /// The kind of code for scrypt.
    pub scrypt_code: String,
    /// Code that gave wrong answers and is not used.
    pub wrong: Vec<String>,
    /// Whether the system gave huge pages; absent where that is not known.
    pub huge_pages: Option<bool>,
}

/// Off the event loop, because it takes some tenths of a second.
pub struct Measure {
    memory_kib: u32,
    room_kib: u32,
}

impl Task for Measure {
    type Output = &'static Profile;
    type JsValue = FoundProfile;

    fn compute(&mut self) -> Result<Self::Output> {
        Ok(PROFILE.get_or_init(|| Profile::measure(self.memory_kib, self.room_kib as usize)))
    }

    fn resolve(&mut self, _: Env, profile: Self::Output) -> Result<Self::JsValue> {
        Ok(FoundProfile {
            bcrypt_width: profile.bcrypt.best() as u32,
            bcrypt_code: format!("{:?}", profile.bcrypt_kind).to_lowercase(),
            argon2_width: profile.argon2.best() as u32,
            argon2_code: profile.compressor.name.to_owned(),
            pbkdf2_width: profile.pbkdf2.widths(usize::MAX, 1).best() as u32,
            pbkdf2_code: profile.pbkdf2.name().to_owned(),
            scrypt_width: profile.scrypt.widths(usize::MAX, 1).best() as u32,
            scrypt_code: profile.scrypt.name().to_owned(),
            wrong: profile.wrong.clone(),
            huge_pages: profile.huge_pages,
        })
    }
}

/// Measures all code with known answers, once a process: argon2 with `memory_kib`, in `room_kib`.
#[napi]
pub fn measure(memory_kib: u32, room_kib: u32) -> AsyncTask<Measure> {
    AsyncTask::new(Measure { memory_kib, room_kib })
}

/// The version of the package, which the worker compares with its own.
#[napi]
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The outcome of a call: one of `matches`, `hash` and `failure` is there.
#[napi(object)]
pub struct Settled {
    /// The call's id.
    pub id: u32,
    /// Whether the password is the one of the stored hash.
    pub matches: Option<bool>,
    /// A new stored hash.
    pub hash: Option<String>,
    /// Why it could not be done.
    pub failure: Option<String>,
    /// Its share of a full batch's time, in milliseconds.
    pub wall_ms: f64,
    /// Its share of a full batch's processor time, in milliseconds.
    pub cpu_ms: f64,
}

impl Settled {
    fn new(id: u32, outcome: Outcome, took: Took) -> Self {
        let [wall_ms, cpu_ms] = [took.wall, took.cpu].map(|time| time.as_secs_f64() * 1e3);
        let nothing = Self { id, matches: None, hash: None, failure: None, wall_ms, cpu_ms };
        match outcome {
            Outcome::Verified(matches) => Self { matches: Some(matches), ..nothing },
            Outcome::Hashed(hash) => Self { hash: Some(hash), ..nothing },
            Outcome::Failed(failure) => Self { failure: Some(failure.to_owned()), ..nothing },
        }
    }
}

/// Threads that hash.
#[napi]
pub struct Engine {
    threads: Threads,
}

#[napi]
impl Engine {
    /// After `measure`. `memory_kib` bounds a thread's batches. `settle` is called once for each batch,
    /// and keeps no event loop alive.
    #[napi(constructor)]
    pub fn new(threads: u32, memory_kib: u32, settle: Function<Vec<Settled>, ()>) -> Result<Self> {
        keep_no_large_memory();
        let settle = settle.build_threadsafe_function::<Vec<Settled>>().weak::<true>().build()?;
        let settle = move |outcomes: Vec<(u32, Outcome)>, took: Took| {
            let settled = outcomes.into_iter().map(|(id, outcome)| Settled::new(id, outcome, took)).collect();
            // Node drops calls into an environment that ends.
            settle.call(settled, ThreadsafeFunctionCallMode::NonBlocking);
        };
        let profile = PROFILE.get().ok_or_else(|| Error::from_reason("the processor was not measured"))?;
        // A block is a KiB.
        let threads = Threads::start(threads as usize, memory_kib as usize, profile, Box::new(settle))
            .map_err(|error| Error::from_reason(format!("the engine's threads could not be started: {error}")))?;
        Ok(Self { threads })
    }

    /// Verifies a stored hash or hashes with a setting; throws on other text. Returns the width of
    /// such calls.
    #[napi]
    pub fn submit(&self, id: u32, password: Either<String, Uint8Array>, stored: String) -> Result<u32> {
        let password = Zeroizing::new(match password {
            Either::A(text) => text.into_bytes(),
            Either::B(bytes) => bytes.to_vec(),
        });
        let stored = parse(&stored)?;
        let width = self.threads.width(stored.method);
        if width == 0 {
            return Err(Error::from_reason("the engine has no code for it that gives right answers on this processor"));
        }
        self.threads.submit(Call { id, password, stored });
        Ok(width as u32)
    }

    /// Takes back a call that has not begun: it is never settled.
    #[napi]
    pub fn cancel(&self, id: u32) -> bool {
        self.threads.cancel(id)
    }

    /// The width of such calls. Throws on text that is neither hash nor setting.
    #[napi]
    pub fn width_of(&self, stored: String) -> Result<u32> {
        Ok(self.threads.width(parse(&stored)?.method) as u32)
    }

    /// How many calls wait.
    #[napi(getter)]
    pub fn waiting(&self) -> u32 {
        self.threads.waiting() as u32
    }

    /// How many calls are in hand.
    #[napi(getter)]
    pub fn running(&self) -> u32 {
        self.threads.running() as u32
    }

    /// Ends the threads after the batch in hand. Waiting calls are never settled.
    #[napi]
    pub fn end(&self) {
        self.threads.end();
    }
}

fn parse(stored: &str) -> Result<Stored> {
    Stored::parse(stored).map_err(|_| {
        Error::new(Status::InvalidArg, "the engine does not know this form of a hash, or not at this cost")
    })
}
