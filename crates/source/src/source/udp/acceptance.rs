//! Classifies a datagram: the next of the stream, behind a gap, held back, or on trial; and adds accepted ones to the
//! stream.

use super::*;

#[expect(private_bounds, reason = "from where datagrams come is chosen here; other crates have sockets")]
impl<H: Hearing> UdpSource<H> {
    /// The cause of a drop by the kernel before a datagram of the batch.
    pub(super) fn cause(&self) -> GapCause {
        if self.batch_was_full { GapCause::BufferFull } else { GapCause::ServedLate }
    }

    /// How many datagrams the sender can have sent from the last one kept to one that arrived at `came`; `None` if its
    /// rate is unknown.
    pub(super) fn sent(&self, came: Instant) -> Option<Sent> {
        self.sent_within(came - self.last_at)
    }

    /// The same for any span.
    pub(super) fn sent_within(&self, span: Nanos) -> Option<Sent> {
        let payload_bytes = self.payload_bytes?;
        let bytes_per_s = match self.about.rate {
            Some(rate) => self.about.layout.byte_rate(rate).bytes_per_s(),
            None => self.average().or(self.average_before)?,
        };
        Some(Sent::within(span, bytes_per_s / payload_bytes as f64, self.about.rate.is_some()))
    }

    /// The average rate in bytes per second, once it counts.
    pub(super) fn average(&self) -> Option<f64> {
        let (from, bytes) = self.average_from?;
        let span = Some(self.last_at - from).filter(|span| *span >= LEAST_AVERAGE)?;
        let bytes = (self.committed + self.lost).checked_sub(bytes + self.payload_bytes?)?;
        ByteRate::of(Bytes(bytes), span).map(ByteRate::bytes_per_s)
    }

    /// Restarts the average at the datagram that arrived at `came`, whose samples follow. `before`: the average before
    /// the gap.
    pub(super) fn average_anew(&mut self, came: Instant, before: Option<f64>) {
        self.average_before = before.or(self.average_before);
        self.average_from = Some((came, self.committed + self.lost));
    }

    /// Datagrams of the stream that are missing by the kernel's count of drops. Some of the drops may have been a
    /// stranger's: those before our sender was heard alone, and all of them where it is not and strangers were heard.
    /// `is_last`: nothing came after them.
    pub(super) fn dropped(&self, dropped: u64, came: Instant, is_last: bool) -> Missing {
        let strange = match self.hearing.is_kept() {
            // The counts turn; half a turn apart they are compared.
            true => u64::try_from(self.strange_drops.wrapping_sub(self.drops) as i32).unwrap_or(0),
            false if self.ignored.foreign > 0 => dropped,
            false => 0,
        };
        let strange = strange.min(dropped);
        if strange == 0 {
            return Missing::exactly(dropped);
        }
        let sent = self.sent(came);
        let most = sent.map_or(dropped, |sent| dropped.min(sent.most));
        let least = (dropped - strange).min(most);
        let usual = match sent {
            None => most,
            // It may have ended before a stranger's flood.
            Some(_) if is_last => 0,
            Some(sent) => (sent.usual - 1.0).round() as u64,
        };
        Missing { likely: Some(usual.clamp(least, most)).filter(|likely| *likely > 0), least, most }
    }

    /// Judges a datagram of the batch, and declares the loss before it.
    pub(super) fn judge(&mut self, received: Received, now: Instant, ring: &mut Producer) -> Judgement {
        let Received { at, length, from, .. } = received;
        let sender = self.peer.knows(from);
        if self.of_others && sender == Sender::Ours && !self.switching {
            // A group's datagrams arrive at both sockets.
            return Judgement::Next;
        }
        let payload_bytes = length.saturating_sub(self.header_bytes) as u64;
        let is_whole = payload_bytes > 0 && payload_bytes.is_multiple_of(self.about.layout.grain().bytes);
        let number = self.sequence.map(|sequence| (sequence, sequence.read(&self.batch.bytes[at..at + length])));
        let fits = match number {
            None => is_whole,
            // With numbers no datagram may be larger, because the frames of a missing one would be unknown.
            Some((_, number)) => {
                is_whole && number.is_some() && self.payload_bytes.is_none_or(|usual| payload_bytes <= usual)
            }
        };
        if sender == Sender::Foreign || sender == Sender::Neighbour && !(fits && number.is_some()) {
            self.ignored.foreign += 1;
            return Judgement::Next;
        }
        if !fits {
            self.ignored.malformed += 1;
            return Judgement::Next;
        }
        if matches!(self.peer, Peer::First) {
            self.peer = Peer::Kept(from);
        }
        if !self.tried_to_keep && sender == Sender::Ours && self.peer.is_one() {
            self.tried_to_keep = true;
            self.hearing.keep(from, received.to);
            self.strange_drops = self.hearing.drops().unwrap_or(received.drops);
        }
        match number {
            Some((sequence, Some(number))) => self.place(received, sequence, number, sender, now, ring),
            _ => self.follow(received, payload_bytes, now, ring),
        }
    }

    /// Places a datagram without a number: it follows the one before.
    pub(super) fn follow(
        &mut self,
        received: Received,
        payload_bytes: u64,
        now: Instant,
        ring: &mut Producer,
    ) -> Judgement {
        let came = now - received.age;
        let missing = self.dropped(received.drops.wrapping_sub(self.drops).into(), came, false);
        self.drops = received.drops;
        // Drops before the very first datagram are not part of the stream.
        if self.payload_bytes.is_some()
            && let Some(end) = self.lose(missing, self.cause(), now, ring)
        {
            return Judgement::End(end);
        }
        self.varies |= *self.payload_bytes.get_or_insert(payload_bytes) != payload_bytes;
        if self.average_from.is_none() {
            self.average_anew(came, None);
        }
        self.last_at = came;
        self.stamp(received.arrived);
        Judgement::Keep
    }

    /// Places a datagram by its number.
    pub(super) fn place(
        &mut self,
        received: Received,
        sequence: Sequence,
        number: u64,
        sender: Sender,
        now: Instant,
        ring: &mut Producer,
    ) -> Judgement {
        let Received { at, length, drops, age, arrived, .. } = received;
        let dropped = if self.of_others { 0 } else { u64::from(drops.wrapping_sub(self.drops)) };
        let cause = if dropped > 0 { self.cause() } else { GapCause::Source };
        let placed = Placed { number, cause, came: now - age, arrived };
        let turned = |oldest| self.sent_within(placed.came - oldest).is_some_and(|sent| sent.may_turn(sequence.bits()));
        if self.window.oldest().is_some_and(turned) {
            // Its number may be that of an expected one, a turn later.
            self.window.open();
            return Judgement::Again;
        }
        let ahead = |number| self.expected.map_or(0, |expected| sequence.forward(number, expected));
        let near = NEAR.max(dropped.saturating_mul(if self.hearing.joins() { MOST_JOINED } else { 1 }));
        let near = self.window.last().map_or(0, |last| ahead(last) + 1).saturating_add(near);
        // The last numbers before the expected one are late datagrams, however many are lost.
        if sender == Sender::Neighbour || ahead(number) > near.min(sequence.highest() - NEAR) {
            return self.hold(received, placed);
        }
        let samples = &self.batch.bytes[at + self.header_bytes..at + length];
        if self.window.is_empty() && ahead(number) == 0 {
            let payload_bytes = samples.len() as u64;
            self.forget_trial();
            self.drops = if self.of_others { self.drops } else { drops };
            return self.settle(placed, payload_bytes, now, ring).map_or(Judgement::Keep, Judgement::End);
        }
        match self.window.keep(placed, samples, ahead, now) {
            Some(is_late) => self.reordered += u64::from(is_late),
            None => self.ignored.repeated += 1,
        }
        self.forget_trial();
        self.drops = if self.of_others { self.drops } else { drops };
        Judgement::Next
    }

    /// Accepts a datagram that is due, and declares the loss before it. The samples before must be in the ring.
    pub(super) fn settle(
        &mut self,
        placed: Placed,
        payload_bytes: u64,
        now: Instant,
        ring: &mut Producer,
    ) -> Option<End> {
        let sequence = self.sequence?;
        let short_bytes = std::mem::take(&mut self.short_bytes);
        if short_bytes > 0 {
            self.ignored.malformed += 1;
            let end = self.lose_bytes(short_bytes, [short_bytes; 2], GapCause::Source, now, ring);
            if end.is_some() {
                return end;
            }
        }
        let sent = if sequence.bits() < 32 { self.sent(placed.came) } else { None };
        let ahead = self.expected.map_or(0, |expected| sequence.forward(placed.number, expected));
        let missing = self.expected.map_or(Missing::exactly(0), |_| Missing::of(ahead, sequence.bits(), sent));
        let average = self.average();
        let end = self.lose(missing, placed.cause, now, ring);
        if end.is_some() {
            return end;
        }
        let usual = *self.payload_bytes.get_or_insert(payload_bytes);
        self.expected = Some(sequence.next(placed.number));
        self.short_bytes = usual - payload_bytes;
        if self.count.is_none() || missing.least < missing.most {
            self.counts(placed.number);
        }
        if self.average_from.is_none() || missing.likely.is_none() {
            self.average_anew(placed.came, average);
        }
        self.last_at = placed.came;
        self.stamp(placed.arrived);
        None
    }

    /// Holds a datagram whose number is out of sequence, until enough of them have come.
    pub(super) fn hold(&mut self, Received { at, length, drops, from, to, .. }: Received, placed: Placed) -> Judgement {
        let is_next = self.trial.count > 0 && (self.trial.from, self.trial.next) == (from, placed.number);
        // A whole turn of the counter may be missing between two datagrams.
        let bits = self.sequence.map_or(64, Sequence::bits);
        let is_next = is_next && {
            let sent = self.sent_within(placed.came - self.trial.last_came);
            Missing::of(0, bits, sent) == Missing::exactly(0)
        };
        if !is_next {
            self.forget_trial();
            let ours = self.peer.knows(from) == Sender::Ours;
            let ahead = self.sequence.zip(self.expected).map_or(0, |(it, expected)| it.ahead(placed.number, expected));
            self.trial = Trial { from, to, ours, behind: ahead < 0, first: placed, ..self.trial.emptied() };
        }
        let samples = &self.batch.bytes[at + self.header_bytes..at + length];
        if Some(samples.len() as u64) != self.payload_bytes {
            self.forget_trial();
            self.ignored.malformed += 1;
            return Judgement::Next;
        }
        self.trial.samples.extend_from_slice(samples);
        self.trial.next = self.sequence.map_or(0, |sequence| sequence.next(placed.number));
        self.trial.last_came = placed.came;
        self.trial.count += 1;
        if self.trial.count >= CONFIRM {
            self.adopting = true;
            self.window.open();
            if !self.of_others {
                self.drops = drops;
            }
        }
        Judgement::Next
    }

    /// The next frame has this number.
    pub(super) fn counts(&mut self, number: u64) {
        let frames = |bytes| self.about.layout.frames_in(Bytes(bytes));
        let frame = frames(self.committed + self.lost);
        let frames_each = u32::try_from(frames(self.payload_bytes.unwrap_or(0)).0).unwrap_or(0);
        self.count = self.sequence.filter(|_| frames_each > 0).map(|sequence| SenderCount {
            frame,
            number,
            frames_each,
            bits: sequence.bits(),
        });
    }

    /// Distance of the first datagram on trial, if it is our sender's and the elapsed time allows for that many.
    pub(super) fn fitting(&self, sequence: Sequence) -> Option<u64> {
        let ahead = self.expected.map_or(0, |expected| sequence.forward(self.trial.first.number, expected));
        let usual = self.sent(self.trial.first.came).map_or(0.0, |sent| sent.usual);
        (self.trial.ours && ahead as f64 <= usual * 2.0 + NEAR as f64).then_some(ahead)
    }

    /// Whether the datagrams on trial are recorded at an end, though there are too few.
    pub(super) fn is_kept_at_end(&self) -> bool {
        let (Some(sequence), Some(expected)) = (self.sequence, self.expected) else { return false };
        let Trial { ours, count, ref first, .. } = self.trial;
        let behind = sequence.forward(expected, first.number);
        let can_be_late = behind <= NEAR + u64::from(count);
        self.fitting(sequence).is_some() || if ours { count > 1 && !can_be_late } else { count >= FEW }
    }

    /// Continues with the datagrams on trial. The samples before must be in the ring.
    pub(super) fn adopt(&mut self, now: Instant, ring: &mut Producer) -> Option<End> {
        self.adopting = false;
        let sequence = self.sequence?;
        let (bits, first) = (sequence.bits(), self.trial.first);
        let sent = self.sent(first.came);
        let most_sent = sent.map_or(u64::MAX, |sent| sent.most);
        let mut missing = match self.fitting(sequence) {
            Some(ahead) => {
                let missing = Missing::of(ahead, bits, sent);
                match bits == 8 || bits == 16 && first.number < FRESH {
                    true => Missing { least: 0, most: missing.most.max(most_sent), ..missing },
                    false => missing,
                }
            }
            None => {
                self.ignored.restarts += 1;
                let ahead = self.expected.map_or(0, |expected| sequence.ahead(first.number, expected));
                let by_rate = sent.filter(|_| self.about.rate.is_some()).map(|sent| (sent.usual - 1.0).round() as u64);
                // The count by the numbers is possible, although the elapsed time does not suggest it.
                let most = most_sent.max(u64::try_from(ahead).unwrap_or(0)).max(by_rate.unwrap_or(0)).max(1);
                Missing { likely: by_rate.filter(|count| *count > 0), least: 0, most }
            }
        };
        if matches!(ring.on_overrun(), OnOverrun::Stop | OnOverrun::Block) {
            // The loss ends the source, and the held datagrams are lost with it.
            let count = u64::from(self.trial.count);
            missing.likely = Some(missing.likely.unwrap_or(0) + count);
            (missing.least, missing.most) = (missing.least + count, missing.most.saturating_add(count));
        }
        // The stream ended with a short datagram and restarted, so nothing is missing from that datagram.
        self.short_bytes = 0;
        let average = self.average();
        let end = self.lose(missing, first.cause, now, ring);
        if end.is_some() {
            return end;
        }
        if self.peer.is_one() && !self.trial.ours {
            self.peer = Peer::Kept(self.trial.from);
            self.hearing.keep(self.trial.from, self.trial.to);
            self.strange_drops = self.hearing.drops().unwrap_or(self.drops);
            (self.drops, self.switching) = (self.strange_drops, self.of_others);
        }
        self.counts(first.number);
        if missing.least < missing.most {
            self.average_anew(first.came, average);
        }
        std::mem::swap(&mut self.ready, &mut self.trial.samples);
        self.expected = Some(self.trial.next);
        (self.trial.count, self.last_at) = (0, self.trial.last_came);
        None
    }

    /// Stores the arrival of the datagram whose samples go into the ring next. A datagram that the kernel joined to
    /// another has no stamp.
    pub(super) fn stamp(&mut self, arrived: Option<Nanos>) {
        let frame = self.about.layout.frames_in(Bytes(self.committed + self.lost));
        let Some(time) = arrived else { return };
        self.newest_stamp = Some(FrameStamp { frame, taken: StampTime::Realtime(time) });
        if frame.0 == 0 {
            self.first_stamp = self.newest_stamp;
        }
    }

    /// Counts the held datagrams as ignored and drops them.
    pub(super) fn forget_trial(&mut self) {
        let count = u64::from(std::mem::take(&mut self.trial.count));
        self.trial.samples.clear();
        self.adopting = false;
        *match (self.trial.ours, self.trial.behind) {
            (false, _) => &mut self.ignored.foreign,
            (true, true) => &mut self.ignored.repeated,
            (true, false) => &mut self.ignored.misnumbered,
        } += count;
    }
}
