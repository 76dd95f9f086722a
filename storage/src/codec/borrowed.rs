//! Reading a value of the compact form where it lies.

use super::{BINARY, DOUBLE, FALSE, INTEGER, Malformed, Reader, STRING, TRUE};
use crate::value::ValueRef;

impl<'a> Reader<'a> {
    /// A value written by [`super::put_value`], without a copy.
    pub(crate) fn value_ref(&mut self) -> Result<ValueRef<'a>, Malformed> {
        match self.u8()? {
            STRING => Ok(ValueRef::String(self.str()?)),
            INTEGER => Ok(ValueRef::Integer(self.zigzag()?)),
            DOUBLE => Ok(ValueRef::Double(f64::from_bits(self.u64()?))),
            FALSE => Ok(ValueRef::Boolean(false)),
            TRUE => Ok(ValueRef::Boolean(true)),
            BINARY => Ok(ValueRef::Binary(self.bytes()?)),
            _ => Err(Malformed("a value")),
        }
    }
}
