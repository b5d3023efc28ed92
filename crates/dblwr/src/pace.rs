//! How fast the requests of a batch go to the storage. The page cleaner says over what time a batch is to be
//! spread (`WriteBatch::spread`).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use disk::{Environment, IoKind, Result, submit_each};
use page::Spread;

use crate::decision::Measured;
use crate::requests::{Cut, PageRequest, Part};

/// Bytes that are submitted together when requests are spread: what a device of 50 MB/s does in 5 ms.
const SLICE_BYTES: usize = 256 << 10;

/// How fast the requests of one batch go to the storage.
///
/// With a time to spread them over, a slice of them is submitted at a time, so that commits and reads find
/// the device's queue short. Where the device is slower than that, each slice follows the one before at once.
pub(crate) struct Pace<'e> {
    env: &'e Arc<dyn Environment>,
    /// The measurements that the batch takes part in.
    turns: &'e [Measured],
    spread: Spread,
    bytes: usize,
    begun: Duration,
    done: usize,
    slept: Duration,
}

impl<'e> Pace<'e> {
    /// For requests of this size, over all steps together.
    pub(crate) fn new(
        env: &'e Arc<dyn Environment>,
        spread: Spread,
        bytes: usize,
        turns: &'e [Measured],
    ) -> Pace<'e> {
        Pace { env, turns, spread, bytes: bytes.max(1), begun: env.now(), done: 0, slept: Duration::ZERO }
    }

    /// Whether requests are spread at all.
    fn is_slow(&self) -> bool {
        !self.spread.time.is_zero()
    }

    /// How pages are cut that may be written in any pieces: so that a slice of them can go at a time.
    pub(crate) fn cut(&self, page_size: usize) -> Cut {
        if self.is_slow() { Cut::Slices(SLICE_BYTES / page_size) } else { Cut::Merged }
    }

    /// How long nothing was under way because there was time.
    pub(crate) fn slept(&self) -> Duration {
        self.slept
    }

    /// Submits the requests, waits for all, and gives the outcome of each, in their order: how long it
    /// took.
    pub(crate) async fn submit(&mut self, requests: Vec<PageRequest>) -> Vec<(Part, Result<Duration>)> {
        if !self.is_slow() {
            return self.submit_together(requests).await;
        }
        let (mut outcomes, mut slice, mut in_slice) = (Vec::new(), Vec::new(), 0);
        for request in requests {
            if in_slice >= SLICE_BYTES && !self.spread.hurry.is_set() {
                outcomes.extend(self.submit_slice(std::mem::take(&mut slice), in_slice).await);
                in_slice = 0;
            }
            in_slice += bytes(&request.request.1);
            slice.push(request);
        }
        outcomes.extend(self.submit_slice(slice, in_slice).await);
        outcomes
    }

    async fn submit_slice(&mut self, slice: Vec<PageRequest>, bytes: usize) -> Vec<(Part, Result<Duration>)> {
        self.wait_for_turn().await;
        self.done += bytes;
        self.submit_together(slice).await
    }

    async fn submit_together(&self, requests: Vec<PageRequest>) -> Vec<(Part, Result<Duration>)> {
        let (parts, requests): (Vec<_>, Vec<_>) =
            requests.into_iter().map(|PageRequest { part, request }| (part, request)).unzip();
        parts.into_iter().zip(submit_each(self.env, requests).await).collect()
    }

    /// Until the next slice is due, or somebody waits for the batch.
    async fn wait_for_turn(&mut self) {
        let now = self.env.now();
        let due = self.begun + self.spread.time.mul_f64(self.done as f64 / self.bytes as f64);
        if due <= now || self.spread.hurry.is_set() {
            return;
        }
        self.turns.iter().for_each(|turn| turn.trial.lock().pauses(turn.way, now));
        let (mut sleep, mut hurry) = (self.env.sleep(due - now), self.spread.hurry.wait());
        std::future::poll_fn(|context| {
            let hurried = Pin::new(&mut hurry).poll(context).is_ready();
            if hurried || sleep.as_mut().poll(context).is_ready() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        let until = self.env.now();
        self.turns.iter().for_each(|turn| turn.trial.lock().goes_on(turn.way, until));
        self.slept += until.saturating_sub(now);
    }
}

fn bytes(kind: &IoKind) -> usize {
    match kind {
        IoKind::Write { buf, .. } => buf.len(),
        _ => 0,
    }
}
