//! A file system of its own, on a file of the real one, that can be filled and emptied while processes write to it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

/// A mounted file system (ext4). Dropping it unmounts it.
#[derive(Debug)]
pub struct Device {
    place: PathBuf,
    /// What it is filled with.
    ballast: Vec<PathBuf>,
}

impl Device {
    /// Makes one of so many bytes in a folder; `None` where none can be mounted, which takes root on Linux.
    ///
    /// # Errors
    /// When the folder can't be written to.
    pub fn mount(folder: &Path, bytes: u64) -> anyhow::Result<Option<Self>> {
        let (image, place) = (folder.join("device.img"), folder.join("device"));
        std::fs::create_dir(&place)?;
        std::fs::File::create(&image)?.set_len(bytes)?;
        let (image, at) = (image.display().to_string(), place.display().to_string());
        let made = run("mkfs.ext4", &["-q", "-F", "-m", "0", &image])
            .and_then(|_| run("mount", &["-t", "ext4", "-o", "loop", &image, &at]));
        Ok(made.is_ok().then_some(Self {
            place,
            ballast: Vec::new(),
        }))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.place
    }

    /// Bytes that are free.
    ///
    /// # Errors
    /// When the system doesn't tell.
    pub fn free(&self) -> anyhow::Result<u64> {
        let place = self.place.display().to_string();
        let told = run("stat", &["--file-system", "--format", "%a %S", &place])?;
        let (blocks, size) = told.trim().split_once(' ').context("two numbers")?;
        Ok(blocks.parse::<u64>()? * size.parse::<u64>()?)
    }

    /// Takes room until about so many bytes are free.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn leave(&mut self, bytes: u64) -> anyhow::Result<()> {
        let surplus = self.free()?.saturating_sub(bytes);
        let ballast = self.place.join(format!("ballast-{}", self.ballast.len()));
        let file = ballast.display().to_string();
        self.ballast.push(ballast);
        // What takes the last byte fails there, and keeps what it took.
        let taken = run("fallocate", &["--length", &surplus.to_string(), &file]);
        anyhow::ensure!(taken.is_ok() || bytes == 0, "{taken:?}");
        Ok(())
    }

    /// Gives all that room back.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn empty(&mut self) -> std::io::Result<()> {
        self.ballast.drain(..).try_for_each(std::fs::remove_file)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // Who still has a file open keeps the device until it ends.
        let _ = run("umount", &["--lazy", &self.place.display().to_string()]);
    }
}

fn run(command: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(command).args(arguments).output()?;
    let (said, complained) = (&output.stdout, String::from_utf8_lossy(&output.stderr));
    anyhow::ensure!(output.status.success(), "{command} {arguments:?}: {complained}");
    Ok(String::from_utf8(said.clone())?)
}
