//! CRC-8/SMBUS, the checksum that plainbuffer puts behind each cell and each row: polynomial 0x07 (x⁸ + x² + x + 1), initial
//! value 0, not reflected. Computed by slicing-by-8.

/// Bytes of a slice: their lookups don't depend on each other, those of single bytes do.
const LANES: usize = 8;

/// `TABLES[n][b]`: the checksum of `b` followed by `n` zeros.
static TABLES: [[u8; 256]; LANES] = tables();

const fn tables() -> [[u8; 256]; LANES] {
    let mut tables = [[0; 256]; LANES];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u8;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc << 1) ^ if crc & 0x80 == 0 { 0 } else { 0x07 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut lane = 1;
    while lane < LANES {
        let mut byte = 0;
        while byte < 256 {
            tables[lane][byte] = tables[0][tables[lane - 1][byte] as usize];
            byte += 1;
        }
        lane += 1;
    }
    tables
}

/// A running checksum; it begins at 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Crc8(pub(crate) u8);

impl Crc8 {
    /// Updates the checksum with a byte.
    pub(crate) fn byte(&mut self, byte: u8) {
        self.0 = TABLES[0][usize::from(self.0 ^ byte)];
    }

    /// Updates the checksum with bytes, as byte by byte.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        let (chunks, rest) = bytes.as_chunks::<LANES>();
        for chunk in chunks {
            let mut crc = TABLES[LANES - 1][usize::from(self.0 ^ chunk[0])];
            for at in 1..LANES {
                crc ^= TABLES[LANES - 1 - at][usize::from(chunk[at])];
            }
            self.0 = crc;
        }
        for byte in rest {
            self.byte(*byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Crc8;

    #[test]
    fn crc_8_smbus_has_its_check_value() {
        let mut crc = Crc8::default();
        crc.bytes(b"123456789");
        assert_eq!(crc.0, 0xf4);
    }

    #[test]
    fn eight_bytes_at_once_are_as_one_after_the_other() {
        let mut random = souk_seeds::random();
        for length in 0..100 {
            let bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
            let start = Crc8(random.u8(..));
            let (mut one, mut eight) = (start, start);
            bytes.iter().for_each(|byte| one.byte(*byte));
            eight.bytes(&bytes);
            assert_eq!(one, eight, "{bytes:?}");
        }
    }
}
