//! The tables that a contract declares, by the option `souk.resource.v1.table` of its services.

use std::collections::BTreeSet;

use prost::{DecodeError, Message};

/// The names of the tables of all services in an encoded `FileDescriptorSet`.
///
/// # Errors
/// When it can't be decoded.
pub fn contract_tables(descriptors: &[u8]) -> Result<BTreeSet<String>, DecodeError> {
    let files = FileSet::decode(descriptors)?.file.into_iter();
    let options = files
        .flat_map(|file| file.service)
        .filter_map(|service| service.options);
    let tables = options.filter_map(|options| options.table);
    Ok(tables.map(|table| table.name).collect())
}

// The parts of `google/protobuf/descriptor.proto` that lead to the option: prost-types drops options it doesn't know.

#[derive(Message)]
struct FileSet {
    #[prost(message, repeated, tag = "1")]
    file: Vec<File>,
}

#[derive(Message)]
struct File {
    #[prost(message, repeated, tag = "6")]
    service: Vec<Service>,
}

#[derive(Message)]
struct Service {
    #[prost(message, optional, tag = "3")]
    options: Option<ServiceOptions>,
}

#[derive(Message)]
struct ServiceOptions {
    /// `souk.resource.v1.table`.
    #[prost(message, optional, tag = "50715")]
    table: Option<Table>,
}

#[derive(Message)]
struct Table {
    #[prost(string, tag = "1")]
    name: String,
}

#[cfg(test)]
mod tests {
    use super::contract_tables;

    #[test]
    fn the_tables_of_the_services_come_from_the_contract() {
        let tables = contract_tables(souk_proto::FILE_DESCRIPTOR_SET).expect("whole");
        let tables: Vec<&str> = tables.iter().map(String::as_str).collect();
        assert_eq!(
            tables,
            [
                "consumers",
                "media",
                "orders",
                "products",
                "salespersons",
                "shops"
            ]
        );
        assert!(contract_tables(&[0xff]).is_err());
    }
}
