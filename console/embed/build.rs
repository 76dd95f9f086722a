//! Lists the files of `../dist`, which npm has built and which are checked in, and compresses them. Needs no Node.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let dist = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../dist");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo:rerun-if-changed={}", dist.display());
    let mut paths = Vec::new();
    files(&dist, &mut paths)?;
    paths.sort();
    let mut list = String::from("&[");
    for (number, path) in paths.iter().enumerate() {
        println!("cargo:rerun-if-changed={}", path.display());
        let name = path
            .strip_prefix(&dist)?
            .to_str()
            .ok_or("a name that isn't text")?;
        let packed = out.join(format!("{number}.gz"));
        fs::write(&packed, gzip(&fs::read(path)?)?)?;
        let address = if name == "index.html" { "" } else { name };
        writeln!(
            list,
            "File {{ path: {:?}, content_type: {:?}, plain: include_bytes!({path:?}), gzip: include_bytes!({packed:?}) }},",
            format!("/{}", address.replace('\\', "/")),
            content_type(name)?,
        )?;
    }
    list.push(']');
    fs::write(out.join("files.rs"), list)?;
    Ok(())
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) -> Outcome<()> {
    for entry in fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            files(&path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

fn content_type(name: &str) -> Outcome<&'static str> {
    Ok(match name.rsplit_once('.').map(|(_, kind)| kind) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        _ => return Err(format!("{name}: say its content type in build.rs").into()),
    })
}

fn gzip(bytes: &[u8]) -> Outcome<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}
