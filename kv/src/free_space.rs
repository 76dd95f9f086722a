//! Free space of a device, as a parameter.

use std::fmt::Debug;
use std::io;
use std::path::Path;

/// Source of the free bytes of a device. [`DeviceSpace`] asks the operating system; tests script their own.
pub trait FreeSpace: Debug + Send + Sync {
    /// Bytes this process may still write below a directory.
    ///
    /// # Errors
    /// What the operating system answers; the store then goes on as if there were space.
    fn free_bytes(&self, directory: &Path) -> io::Result<u64>;
}

/// Free space of the file system of a directory.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeviceSpace;

impl FreeSpace for DeviceSpace {
    fn free_bytes(&self, directory: &Path) -> io::Result<u64> {
        fs4::available_space(directory)
    }
}
