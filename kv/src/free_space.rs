//! How much room a device has left, as a parameter.

use std::fmt::Debug;
use std::io;
use std::path::Path;

/// Tells how much room there is. [`DeviceSpace`] asks the operating system; tests script their own.
pub trait FreeSpace: Debug + Send + Sync {
    /// Bytes this process may still write below a directory.
    ///
    /// # Errors
    /// What the operating system answers; the store then goes on as if there were room.
    fn free_bytes(&self, directory: &Path) -> io::Result<u64>;
}

/// The room of the file system a directory is on.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeviceSpace;

impl FreeSpace for DeviceSpace {
    fn free_bytes(&self, directory: &Path) -> io::Result<u64> {
        fs4::available_space(directory)
    }
}
