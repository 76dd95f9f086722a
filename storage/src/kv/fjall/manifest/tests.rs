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
