//! [`Taps`]: other processes look on at the recording: a socket for each card, and a thread that serves it.

use std::io::ErrorKind;
use std::sync::Arc;
use std::thread::JoinHandle;

use hairspring_record::session::RecordProgress;
use hairspring_ring::notifier::Notifier;
use hairspring_tap::{TapOffer, TapPlace};

use crate::exit::Failure;
use crate::output;

/// The taps of all cards.
pub(crate) struct Taps {
    /// Bound, and not served yet.
    bound: Vec<TapOffer>,
    served: Vec<(Arc<Notifier>, JoinHandle<()>)>,
}

impl Taps {
    /// Takes the names before anything is recorded.
    pub(crate) fn bind(place: &TapPlace, cards: usize) -> Result<Self, Failure> {
        let bind = |number: usize| {
            let place = if cards > 1 { place.of_card(number) } else { place.clone() };
            TapOffer::bind(&place).map_err(|error| {
                let shown = place.to_offer();
                let shown = shown.display();
                let text = format!("failed to offer the tap {shown}: {error}");
                match error.kind() {
                    ErrorKind::AddrInUse => Failure::bad_request(text),
                    _ => Failure::bad_request(format!(
                        "{text}; name the path of a socket in a folder of yours, as --tap /tmp/adc"
                    )),
                }
            })
        };
        Ok(Self { bound: (0..cards).map(bind).collect::<Result<_, _>>()?, served: Vec::new() })
    }

    /// Serves the taps as soon as the rings exist. A tap that cannot be served costs nothing but itself.
    pub(crate) fn hand_over(&mut self, cards: &[RecordProgress]) {
        for (offer, card) in self.bound.drain(..).zip(cards) {
            match serve(offer, card) {
                Ok(served) => self.served.push(served),
                Err(error) => {
                    output::complain(&format!("failed to offer the tap: {error}; the recording goes on without it"));
                }
            }
        }
    }

    /// Ends the taps, and removes their sockets. Readers keep their mappings.
    pub(crate) fn end(self) {
        for (stop, thread) in self.served {
            stop.notify();
            // A panic has been reported already.
            let _ = thread.join();
        }
    }
}

fn serve(offer: TapOffer, card: &RecordProgress) -> std::io::Result<(Arc<Notifier>, JoinHandle<()>)> {
    let tap = card.tap.as_ref().ok_or(ErrorKind::Unsupported)?;
    let shared = tap.share()?;
    let stop = Arc::new(Notifier::new()?);
    let ours = Arc::clone(&stop);
    let thread = std::thread::Builder::new().name("tap".to_owned()).spawn(move || {
        if let Err(error) = offer.serve(&shared, &stop) {
            output::complain(&format!("failed to serve the tap: {error}; the recording goes on without it"));
        }
    })?;
    Ok((ours, thread))
}
