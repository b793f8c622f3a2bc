//! How a stream ends, and what happens when data do not fit.

/// How a stream ended.
#[derive(Clone, Debug, Copy, PartialEq, Eq)]
pub enum End {
    /// The source produced all requested data, or its file or connection ended.
    Finished,
    /// The program stopped the source.
    Stopped,
    /// The source stopped at the first loss, as its policy demands.
    Overrun,
    /// The device or connection failed, with the system's error number.
    Failed(i32),
}

impl End {
    /// Its stable name in files and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Stopped => "stopped",
            Self::Overrun => "overrun",
            Self::Failed(_) => "failed",
        }
    }
}

/// Policy for data that find no room in the ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnOverrun {
    /// End at the first loss; everything before it is kept.
    #[default]
    Stop,
    /// Drop the newest, declare the gap, go on as soon as there is room.
    Gap,
    /// Drop the oldest that are not yet being written, declare the gap.
    Overwrite,
    /// Make the source wait; refused for a clocked one.
    Block,
}

impl OnOverrun {
    /// Every policy.
    pub const ALL: [Self; 4] = [Self::Stop, Self::Gap, Self::Overwrite, Self::Block];

    /// Its name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Gap => "gap",
            Self::Overwrite => "overwrite",
            Self::Block => "block",
        }
    }
}
