//! The tables that a contract declares, by the option `souk.resource.v1.table` of its services.

use std::collections::BTreeSet;

use prost::DecodeError;
use souk_proto::options;

/// The names of the tables of all services in an encoded `FileDescriptorSet`.
///
/// # Errors
/// When it can't be decoded.
pub fn contract_tables(descriptors: &[u8]) -> Result<BTreeSet<String>, DecodeError> {
    let services = options::services(descriptors)?.into_iter();
    Ok(services.filter_map(|service| service.table).collect())
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
