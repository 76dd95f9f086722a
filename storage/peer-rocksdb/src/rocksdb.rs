//! The part of RocksDB's C interface that is measured.

use std::ffi::{CStr, CString, c_char, c_double, c_int, c_uchar, c_void};
use std::path::Path;
use std::ptr;

type Handle = *mut c_void;

#[link(name = "rocksdb")]
unsafe extern "C" {
    fn rocksdb_options_create() -> Handle;
    fn rocksdb_options_set_create_if_missing(options: Handle, on: c_uchar);
    fn rocksdb_options_set_create_missing_column_families(options: Handle, on: c_uchar);
    fn rocksdb_options_increase_parallelism(options: Handle, threads: c_int);
    fn rocksdb_options_set_compression(options: Handle, kind: c_int);
    fn rocksdb_options_set_compression_per_level(options: Handle, kinds: *const c_int, levels: usize);
    fn rocksdb_options_set_block_based_table_factory(options: Handle, table: Handle);
    fn rocksdb_options_set_level_compaction_dynamic_level_bytes(options: Handle, on: c_uchar);
    fn rocksdb_block_based_options_create() -> Handle;
    fn rocksdb_block_based_options_set_filter_policy(table: Handle, filter: Handle);
    fn rocksdb_filterpolicy_create_bloom_full(bits: c_double) -> Handle;
    fn rocksdb_block_based_options_set_block_cache(table: Handle, cache: Handle);
    fn rocksdb_cache_create_lru(bytes: usize) -> Handle;
    fn rocksdb_open_column_families(
        options: Handle,
        path: *const c_char,
        count: c_int,
        names: *const *const c_char,
        family_options: *const Handle,
        families: *mut Handle,
        error: *mut *mut c_char,
    ) -> Handle;
    fn rocksdb_column_family_handle_destroy(family: Handle);
    fn rocksdb_close(db: Handle);
    fn rocksdb_free(memory: *mut c_void);
    fn rocksdb_writeoptions_create() -> Handle;
    fn rocksdb_writeoptions_set_sync(options: Handle, on: c_uchar);
    fn rocksdb_writeoptions_destroy(options: Handle);
    fn rocksdb_readoptions_create() -> Handle;
    fn rocksdb_readoptions_destroy(options: Handle);
    fn rocksdb_writebatch_create() -> Handle;
    fn rocksdb_writebatch_put_cf(
        batch: Handle,
        family: Handle,
        key: *const c_char,
        key_bytes: usize,
        value: *const c_char,
        value_bytes: usize,
    );
    fn rocksdb_writebatch_destroy(batch: Handle);
    fn rocksdb_write(db: Handle, options: Handle, batch: Handle, error: *mut *mut c_char);
    fn rocksdb_get_pinned_cf(
        db: Handle,
        options: Handle,
        family: Handle,
        key: *const c_char,
        key_bytes: usize,
        error: *mut *mut c_char,
    ) -> Handle;
    fn rocksdb_pinnableslice_value(slice: Handle, bytes: *mut usize) -> *const c_char;
    fn rocksdb_pinnableslice_destroy(slice: Handle);
    fn rocksdb_create_iterator_cf(db: Handle, options: Handle, family: Handle) -> Handle;
    fn rocksdb_iter_seek_to_first(iterator: Handle);
    fn rocksdb_iter_seek_to_last(iterator: Handle);
    fn rocksdb_iter_seek(iterator: Handle, key: *const c_char, bytes: usize);
    fn rocksdb_iter_seek_for_prev(iterator: Handle, key: *const c_char, bytes: usize);
    fn rocksdb_iter_valid(iterator: Handle) -> c_uchar;
    fn rocksdb_iter_next(iterator: Handle);
    fn rocksdb_iter_prev(iterator: Handle);
    fn rocksdb_iter_key(iterator: Handle, bytes: *mut usize) -> *const c_char;
    fn rocksdb_iter_value(iterator: Handle, bytes: *mut usize) -> *const c_char;
    fn rocksdb_iter_destroy(iterator: Handle);
    fn rocksdb_flushoptions_create() -> Handle;
    fn rocksdb_flushoptions_destroy(options: Handle);
    fn rocksdb_flush_cf(db: Handle, options: Handle, family: Handle, error: *mut *mut c_char);
    fn rocksdb_property_value_cf(db: Handle, family: Handle, name: *const c_char) -> *mut c_char;
}

/// Kinds of compression, by RocksDB's numbers.
const NONE: c_int = 0;
const LZ4: c_int = 4;
/// As our engine has it: the two uppermost levels as they are, LZ4 below.
const COMPRESSION: [c_int; 7] = [NONE, NONE, LZ4, LZ4, LZ4, LZ4, LZ4];
const BLOOM_BITS: f64 = 10.0;
/// Threads that flush and compact, as ours.
const THREADS: c_int = 2;

/// Where keys live.
#[derive(Debug, Clone, Copy)]
pub enum Family {
    Rows,
    Log,
}

const NAMES: [&CStr; 3] = [c"default", c"rows", c"log"];

/// An open database.
pub struct Db {
    db: Handle,
    families: [Handle; NAMES.len()],
    durable: Handle,
    buffered: Handle,
    read: Handle,
}

// SAFETY: the handles may be used by many threads (RocksDB, "Basic Operations", Concurrency); nothing changes the fields.
unsafe impl Send for Db {}
unsafe impl Sync for Db {}

impl Db {
    /// Opens or creates it.
    pub fn open(path: &Path, cache_bytes: usize) -> Result<Self, String> {
        std::fs::create_dir_all(path).map_err(|error| error.to_string())?;
        let path = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|error| error.to_string())?;
        let names = NAMES.map(CStr::as_ptr);
        let mut families = [ptr::null_mut(); NAMES.len()];
        // SAFETY: every pointer is of a live object of the kind its function takes.
        unsafe {
            let options = rocksdb_options_create();
            rocksdb_options_set_create_if_missing(options, 1);
            rocksdb_options_set_create_missing_column_families(options, 1);
            rocksdb_options_increase_parallelism(options, THREADS);
            rocksdb_options_set_compression(options, LZ4);
            rocksdb_options_set_compression_per_level(options, COMPRESSION.as_ptr(), COMPRESSION.len());
            rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 0);
            let table = rocksdb_block_based_options_create();
            rocksdb_block_based_options_set_filter_policy(
                table,
                rocksdb_filterpolicy_create_bloom_full(BLOOM_BITS),
            );
            rocksdb_block_based_options_set_block_cache(table, rocksdb_cache_create_lru(cache_bytes));
            rocksdb_options_set_block_based_table_factory(options, table);
            let each = [options; NAMES.len()];
            let count = NAMES.len() as c_int;
            let db = checked(|error| {
                rocksdb_open_column_families(
                    options,
                    path.as_ptr(),
                    count,
                    names.as_ptr(),
                    each.as_ptr(),
                    families.as_mut_ptr(),
                    error,
                )
            })?;
            let (durable, buffered) = (rocksdb_writeoptions_create(), rocksdb_writeoptions_create());
            rocksdb_writeoptions_set_sync(durable, 1);
            rocksdb_writeoptions_set_sync(buffered, 0);
            Ok(Self {
                db,
                families,
                durable,
                buffered,
                read: rocksdb_readoptions_create(),
            })
        }
    }

    fn family(&self, family: Family) -> Handle {
        self.families[match family {
            Family::Rows => 1,
            Family::Log => 2,
        }]
    }

    /// Gives the value of a key to `read`.
    pub fn get<T>(
        &self,
        family: Family,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, String> {
        // SAFETY: as in `open`; the value lives until its slice is destroyed.
        unsafe {
            let slice = checked(|error| {
                let family = self.family(family);
                rocksdb_get_pinned_cf(self.db, self.read, family, key.as_ptr().cast(), key.len(), error)
            })?;
            if slice.is_null() {
                return Ok(None);
            }
            let mut bytes = 0;
            let value = rocksdb_pinnableslice_value(slice, &mut bytes);
            let result = read(std::slice::from_raw_parts(value.cast(), bytes));
            rocksdb_pinnableslice_destroy(slice);
            Ok(Some(result))
        }
    }

    /// Writes a batch.
    pub fn write(&self, batch: Batch<'_>, durable: bool) -> Result<(), String> {
        let options = if durable { self.durable } else { self.buffered };
        // SAFETY: as in `open`.
        checked(|error| unsafe { rocksdb_write(self.db, options, batch.batch, error) })
    }

    /// Gives up to `limit` entries from a key (or an end) on to `read`, copied.
    pub fn scan(
        &self,
        from: Option<&[u8]>,
        forward: bool,
        limit: u64,
        mut read: impl FnMut(Vec<u8>, Vec<u8>),
    ) -> u64 {
        // SAFETY: as in `open`; key and value live until the iterator moves.
        unsafe {
            let iterator = rocksdb_create_iterator_cf(self.db, self.read, self.family(Family::Rows));
            match (from, forward) {
                (None, true) => rocksdb_iter_seek_to_first(iterator),
                (None, false) => rocksdb_iter_seek_to_last(iterator),
                (Some(key), true) => rocksdb_iter_seek(iterator, key.as_ptr().cast(), key.len()),
                (Some(key), false) => rocksdb_iter_seek_for_prev(iterator, key.as_ptr().cast(), key.len()),
            }
            let mut found = 0;
            while found < limit && rocksdb_iter_valid(iterator) != 0 {
                let mut bytes = 0;
                let key = rocksdb_iter_key(iterator, &mut bytes);
                let key = std::slice::from_raw_parts(key.cast::<u8>(), bytes).to_vec();
                let value = rocksdb_iter_value(iterator, &mut bytes);
                let value = std::slice::from_raw_parts(value.cast::<u8>(), bytes).to_vec();
                read(key, value);
                found += 1;
                if forward {
                    rocksdb_iter_next(iterator);
                } else {
                    rocksdb_iter_prev(iterator);
                }
            }
            rocksdb_iter_destroy(iterator);
            found
        }
    }

    /// Writes the memtables out.
    pub fn flush(&self) -> Result<(), String> {
        for family in [Family::Rows, Family::Log] {
            // SAFETY: as in `open`.
            unsafe {
                let options = rocksdb_flushoptions_create();
                let flushed = checked(|error| rocksdb_flush_cf(self.db, options, self.family(family), error));
                rocksdb_flushoptions_destroy(options);
                flushed?;
            }
        }
        Ok(())
    }

    /// Whether nothing is flushed or compacted, nor has to be.
    pub fn is_idle(&self) -> bool {
        [
            c"rocksdb.num-running-compactions",
            c"rocksdb.compaction-pending",
            c"rocksdb.num-running-flushes",
        ]
        .into_iter()
        .all(|name| {
            [Family::Rows, Family::Log]
                .iter()
                .all(|family| self.property(*family, name) == "0")
        })
    }

    fn property(&self, family: Family, name: &CStr) -> String {
        // SAFETY: as in `open`; the text is ours to free.
        unsafe {
            let text = rocksdb_property_value_cf(self.db, self.family(family), name.as_ptr());
            if text.is_null() {
                return String::new();
            }
            let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
            rocksdb_free(text.cast());
            copy
        }
    }
}

impl Drop for Db {
    fn drop(&mut self) {
        // SAFETY: nobody uses the handles any more.
        unsafe {
            rocksdb_writeoptions_destroy(self.durable);
            rocksdb_writeoptions_destroy(self.buffered);
            rocksdb_readoptions_destroy(self.read);
            self.families
                .iter()
                .for_each(|family| rocksdb_column_family_handle_destroy(*family));
            rocksdb_close(self.db);
        }
    }
}

/// Writes that happen together.
pub struct Batch<'a> {
    db: &'a Db,
    batch: Handle,
}

impl<'a> Batch<'a> {
    pub fn new(db: &'a Db) -> Self {
        // SAFETY: it takes nothing.
        Self {
            db,
            batch: unsafe { rocksdb_writebatch_create() },
        }
    }

    pub fn put(&mut self, family: Family, key: &[u8], value: &[u8]) {
        let family = self.db.family(family);
        let (key, key_bytes, value, value_bytes) = (key.as_ptr(), key.len(), value.as_ptr(), value.len());
        // SAFETY: as in `Db::open`; both are copied.
        unsafe {
            rocksdb_writebatch_put_cf(
                self.batch,
                family,
                key.cast(),
                key_bytes,
                value.cast(),
                value_bytes,
            )
        };
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        // SAFETY: nobody else has it.
        unsafe { rocksdb_writebatch_destroy(self.batch) };
    }
}

fn checked<T>(call: impl FnOnce(*mut *mut c_char) -> T) -> Result<T, String> {
    let mut error = ptr::null_mut();
    let result = call(&mut error);
    if error.is_null() {
        return Ok(result);
    }
    // SAFETY: RocksDB left a text that is ours to free.
    unsafe {
        let text = CStr::from_ptr(error).to_string_lossy().into_owned();
        rocksdb_free(error.cast());
        Err(text)
    }
}
