use super::*;

#[test]
fn compares_the_newest_list_of_each_space() {
    let data = tempfile::tempdir().unwrap();
    let engine = ::fjall::Database::builder(data.path()).open().unwrap();
    let space = engine
        .keyspace("rows", ::fjall::KeyspaceCreateOptions::default)
        .unwrap();
    space.insert("key", "value").unwrap();
    space.rotate_memtable_and_wait().unwrap();
    drop((space, engine));
    check(data.path()).unwrap();

    let space = data.path().join("keyspaces/1");
    let current = fs::read(space.join(CURRENT)).unwrap();
    let name = format!("v{}", current[0]);
    let list = space.join(&name);
    let whole = fs::read(&list).unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(&list, damaged).unwrap();
        let error = check(data.path()).expect_err("damage");
        assert!(error.to_string().contains(&name), "{error}");
    }
    fs::write(&list, whole).unwrap();
    check(data.path()).unwrap();
}

/// A damaged count of parts made the engine ask for 72 GB, which ended the process.
#[test]
fn compares_the_end_of_each_table() {
    let data = tempfile::tempdir().unwrap();
    let engine = ::fjall::Database::builder(data.path()).open().unwrap();
    let options = || ::fjall::KeyspaceCreateOptions::default().with_kv_separation(Some(separated()));
    let space = engine.keyspace("rows", options).unwrap();
    space.insert("key", "value").unwrap();
    space.insert("large", vec![7; 100_000]).unwrap();
    space.rotate_memtable_and_wait().unwrap();
    drop((space, engine));
    check(data.path()).unwrap();

    let folder = data.path().join("keyspaces/1");
    for kind in ["tables", "blobs"] {
        let file = fs::read_dir(folder.join(kind)).unwrap().next().unwrap();
        let file = file.unwrap().path();
        let whole = fs::read(&file).unwrap();
        let trailer = whole.len() - 38;
        let table = u64::from_le_bytes(*whole[trailer + 22..].first_chunk().unwrap()) as usize;
        assert_eq!(&whole[table..table + 4], b"TOC!");
        for at in (table..trailer).chain(trailer + 6..trailer + 30) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x80;
            fs::write(&file, damaged).unwrap();
            let error = check(data.path()).expect_err("damage");
            assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
        }
        fs::write(&file, whole).unwrap();
        check(data.path()).unwrap();
    }
}

fn separated() -> ::fjall::KvSeparationOptions {
    ::fjall::KvSeparationOptions::default().separation_threshold(1_000)
}
