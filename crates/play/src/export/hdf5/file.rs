//! An HDF5 file with a group, attributes and datasets that lie in other files or after everything else: the minimum of
//! the format (HDF5 File Format Specification, version 3) that the library reads.
//!
//! ```text
//! superblock (version 0) ─▸ header of the root group ─▸ link ─▸ header of a dataset ─▸ heap with its files' names
//! ```
//!
//! All numbers are little-endian, all offsets and lengths 8 bytes. Headers are of version 1 and hold links as messages,
//! so that no B-tree is needed.

/// The undefined address.
const NOWHERE: u64 = u64::MAX;

/// The type of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) enum Element {
    Integer { bytes: u64, signed: bool },
    Float { bytes: u64 },
}

impl Element {
    pub(super) fn bytes(self) -> u64 {
        match self {
            Self::Integer { bytes, .. } | Self::Float { bytes } => bytes,
        }
    }
}

/// A piece of a data file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// Which file, by its number in the list.
    pub(super) file: usize,
    pub(super) offset: u64,
    pub(super) length: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Dataset {
    pub(super) name: String,
    pub(super) rows: u64,
    pub(super) columns: u64,
    pub(super) element: Element,
    /// Whether the bytes of a sample are in the other order than everything else.
    pub(super) is_big_endian: bool,
    pub(super) place: Place,
    pub(super) attributes: Vec<Attribute>,
}

/// The place of a dataset's samples.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// In other files.
    Elsewhere(Vec<Piece>),
    /// In this file, after the bytes that [`encode`] returns and the datasets before it.
    Here,
}

impl Dataset {
    pub(super) fn bytes(&self) -> u64 {
        self.rows * self.columns * self.element.bytes()
    }
}

#[derive(Clone, Debug)]
pub(super) struct Attribute {
    pub(super) name: &'static str,
    pub(super) value: Value,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Integer(u64),
    Float(f64),
    Text(String),
    /// Lists with one value for each channel.
    Integers(Vec<u64>),
    Floats(Vec<f64>),
    Texts(Vec<String>),
}

/// A message of an object header: its type and content.
type Message = (u16, Vec<u8>);

/// The whole file, without the samples of datasets that lie in it.
pub(super) fn encode(files: &[String], datasets: &[Dataset], attributes: &[Attribute]) -> Vec<u8> {
    // The length of the bytes before the samples does not depend on the samples' place.
    let length = encoded_at(0, files, datasets, attributes).len() as u64;
    encoded_at(length, files, datasets, attributes)
}

/// The same if the first dataset of this file begins at `here`.
fn encoded_at(mut here: u64, files: &[String], datasets: &[Dataset], attributes: &[Attribute]) -> Vec<u8> {
    // The superblock is 96 bytes; its content is known at the end.
    let mut out = vec![0; 96];
    let mut root: Vec<Message> = vec![(0x02, link_info()), (0x0A, vec![0, 0])];
    for dataset in datasets {
        let header = dataset_header(&mut out, files, dataset, here);
        if matches!(dataset.place, Place::Here) {
            here += dataset.bytes();
        }
        root.push((0x06, link(&dataset.name, header)));
    }
    root.extend(attributes.iter().map(|attribute| (0x0C, encoded(attribute))));
    let header = append(&mut out, &object(&root));
    // The end of the file, its samples included.
    let end = here.max(out.len() as u64);
    out[..96].copy_from_slice(&superblock(header, end));
    out
}

fn superblock(root: u64, end: u64) -> Vec<u8> {
    let mut block = b"\x89HDF\r\n\x1a\n".to_vec();
    // Versions of superblock, free space, root group and shared headers; sizes of offsets and lengths.
    block.extend([0, 0, 0, 0, 0, 8, 8, 0]);
    // The shape of B-trees, which this file lacks; flags.
    block.extend([4, 0, 16, 0, 0, 0, 0, 0]);
    for address in [0, NOWHERE, end, NOWHERE] {
        block.extend(address.to_le_bytes());
    }
    // The root group's entry: no name, its header, nothing cached.
    for word in [0, root, 0, 0, 0] {
        block.extend(word.to_le_bytes());
    }
    block
}

/// An object header of version 1 with one chunk.
fn object(messages: &[Message]) -> Vec<u8> {
    let mut body = Vec::new();
    for (kind, content) in messages {
        let length = content.len().next_multiple_of(8);
        body.extend(kind.to_le_bytes());
        body.extend(u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes());
        body.extend([0; 4]);
        body.extend(content);
        body.resize(body.len() + length - content.len(), 0);
    }
    let mut header = vec![1, 0];
    header.extend(u16::try_from(messages.len()).unwrap_or(u16::MAX).to_le_bytes());
    header.extend(1_u32.to_le_bytes());
    header.extend(u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
    header.extend([0; 4]);
    header.extend(body);
    header
}

/// Appends at a multiple of 8; returns the address.
fn append(out: &mut Vec<u8>, bytes: &[u8]) -> u64 {
    out.resize(out.len().next_multiple_of(8), 0);
    let at = out.len() as u64;
    out.extend(bytes);
    at
}

/// Links are messages of the header itself, not in a heap.
fn link_info() -> Vec<u8> {
    let mut message = vec![0, 0];
    message.extend(NOWHERE.to_le_bytes());
    message.extend(NOWHERE.to_le_bytes());
    message
}

fn link(name: &str, header: u64) -> Vec<u8> {
    // Names are made here and short: one byte for the length.
    let mut message = vec![1, 0, u8::try_from(name.len()).unwrap_or(u8::MAX)];
    message.extend(name.as_bytes());
    message.extend(header.to_le_bytes());
    message
}

fn dataset_header(out: &mut Vec<u8>, files: &[String], dataset: &Dataset, here: u64) -> u64 {
    let (address, external) = match &dataset.place {
        Place::Elsewhere(pieces) if !pieces.is_empty() => (NOWHERE, Some(external_files(out, files, pieces))),
        Place::Here if dataset.bytes() > 0 => (here, None),
        _ => (NOWHERE, None),
    };
    let mut layout = vec![3, 1];
    layout.extend(address.to_le_bytes());
    layout.extend(dataset.bytes().to_le_bytes());
    let mut kind = match dataset.element {
        Element::Integer { bytes, signed } => integer(bytes, signed),
        Element::Float { bytes } => float(bytes as u32),
    };
    kind[1] |= u8::from(dataset.is_big_endian);
    let mut messages: Vec<Message> = vec![
        (0x01, space(&[dataset.rows, dataset.columns])),
        (0x03, kind),
        // Space is allocated late, fill values are written if set, and none is.
        (0x05, vec![2, 2, 2, 0]),
    ];
    messages.extend(external.map(|external| (0x07, external)));
    messages.push((0x08, layout));
    messages.extend(dataset.attributes.iter().map(|attribute| (0x0C, encoded(attribute))));
    append(out, &object(&messages))
}

/// The list of pieces in other files, whose names go into a heap.
fn external_files(out: &mut Vec<u8>, files: &[String], pieces: &[Piece]) -> Vec<u8> {
    // The heap begins with an empty name.
    let mut names = vec![0; 8];
    let mut places = Vec::with_capacity(files.len());
    for file in files {
        places.push(names.len() as u64);
        names.extend(file.as_bytes());
        names.push(0);
        names.resize(names.len().next_multiple_of(8), 0);
    }
    let segment = append(out, &names);
    let mut heap = b"HEAP\0\0\0\0".to_vec();
    // Its size, no free space (encoded as 1), its address.
    for word in [names.len() as u64, 1, segment] {
        heap.extend(word.to_le_bytes());
    }
    let heap = append(out, &heap);
    let count = u16::try_from(pieces.len()).unwrap_or(u16::MAX).to_le_bytes();
    let mut external = vec![1, 0, 0, 0];
    external.extend([count, count].concat());
    external.extend(heap.to_le_bytes());
    for piece in pieces {
        for word in [places[piece.file], piece.offset, piece.length] {
            external.extend(word.to_le_bytes());
        }
    }
    external
}

fn space(dimensions: &[u64]) -> Vec<u8> {
    let mut message = vec![1, dimensions.len() as u8, 0, 0, 0, 0, 0, 0];
    message.extend(dimensions.iter().flat_map(|size| size.to_le_bytes()));
    message
}

fn integer(bytes: u64, signed: bool) -> Vec<u8> {
    let mut message = vec![0x10, if signed { 0x08 } else { 0 }, 0, 0];
    message.extend((bytes as u32).to_le_bytes());
    message.extend(0_u16.to_le_bytes());
    message.extend((bytes as u16 * 8).to_le_bytes());
    message
}

/// IEEE 754, of 4 or 8 bytes.
fn float(bytes: u32) -> Vec<u8> {
    let [sign, exponent_at, exponent_bits, mantissa_bits] = if bytes == 4 { [31, 23, 8, 23] } else { [63, 52, 11, 52] };
    let bias: u32 = if bytes == 4 { 127 } else { 1023 };
    let mut message = vec![0x11, 0x20, sign, 0];
    message.extend(bytes.to_le_bytes());
    message.extend(0_u16.to_le_bytes());
    message.extend((bytes as u16 * 8).to_le_bytes());
    message.extend([exponent_at, exponent_bits, 0, mantissa_bits]);
    message.extend(bias.to_le_bytes());
    message
}

/// Texts of one length in UTF-8, each ended by zeros; HDF5 has no texts of length 0.
fn texts(texts: &[&String]) -> (Vec<u8>, Vec<u8>) {
    let most = texts.iter().map(|text| text.len().min(1000)).max().unwrap_or(0);
    let mut value = Vec::new();
    for text in texts {
        let end = value.len() + most + 1;
        value.extend(text.bytes().take(most));
        value.resize(end, 0);
    }
    let mut kind = vec![0x13, 0x10, 0, 0];
    kind.extend((most as u32 + 1).to_le_bytes());
    (kind, value)
}

pub(super) fn encoded(attribute: &Attribute) -> Vec<u8> {
    let (kind, value) = match &attribute.value {
        Value::Integer(number) => (integer(8, false), number.to_le_bytes().to_vec()),
        Value::Float(number) => (float(8), number.to_le_bytes().to_vec()),
        Value::Text(text) => texts(&[text]),
        Value::Integers(numbers) => {
            (integer(8, false), numbers.iter().flat_map(|number| number.to_le_bytes()).collect())
        }
        Value::Floats(numbers) => (float(8), numbers.iter().flat_map(|number| number.to_le_bytes()).collect()),
        Value::Texts(list) => texts(&list.iter().collect::<Vec<_>>()),
    };
    let dimensions = match &attribute.value {
        Value::Integers(list) => vec![list.len() as u64],
        Value::Floats(list) => vec![list.len() as u64],
        Value::Texts(list) => vec![list.len() as u64],
        _ => Vec::new(),
    };
    let (name, space) = ([attribute.name.as_bytes(), b"\0"].concat(), space(&dimensions));
    let mut message = vec![1, 0];
    for length in [name.len(), kind.len(), space.len()] {
        message.extend((length as u16).to_le_bytes());
    }
    for part in [name, kind, space] {
        message.extend(&part);
        message.resize(message.len().next_multiple_of(8), 0);
    }
    message.extend(value);
    message
}
