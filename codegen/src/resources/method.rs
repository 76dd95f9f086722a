//! An RPC of a resource's service: a standard one, which every resource can have and whose code is generated, or one that the
//! service has to write.
//!
//! Generated code has placeholders: `$MARKER$` and `$MESSAGE$` are filled in by [`super`], `$OUTPUT$`, the response's type, here.
//! What it calls is in `souk_api::generated`.

use prost_reflect::{Kind, MessageDescriptor, MethodDescriptor};

use crate::Result;
use crate::names::{snake, snake_identifier, unescaped};
use crate::options::{flag, option, text, texts};

/// The option of an RPC that lists a secondary index.
pub(super) const LIST: &str = "souk.resource.v1.list";

/// An RPC of a resource's service.
pub(super) struct ResourceMethod {
    name: String,
    /// The types of request and response.
    input: String,
    output: String,
    /// Whether it is server-streaming.
    streams: bool,
    /// The body of a standard RPC; `None` when the service has to write it.
    standard: Option<String>,
}

impl ResourceMethod {
    /// Reads an RPC of the service `<item>Service`, whose resource is `message`. It is standard by its name, unless it is among
    /// those `by_hand`.
    ///
    /// # Errors
    /// When it has the name of a standard RPC, but not what that needs.
    pub(super) fn read(
        method: &MethodDescriptor,
        item: &str,
        message: &MessageDescriptor,
        by_hand: &[&str],
    ) -> Result<Self> {
        let standard = StandardMethod { method, message };
        let name = method.name();
        let body = match name {
            name if by_hand.contains(&name) => None,
            name if *name == format!("Create{item}") => Some(standard.create()?),
            name if name.starts_with("BatchCreate") => Some(standard.batch_create()?),
            name if *name == format!("Get{item}") => Some(standard.get()?),
            name if name.starts_with("BatchGet") => Some(standard.batch_get()?),
            name if *name == format!("Update{item}") => Some(standard.update(item)?),
            name if *name == format!("Delete{item}") => Some(standard.delete()?),
            name if name.starts_with("List") => standard.list()?,
            name if name.starts_with("Search") => Some(standard.search()?),
            name if name.starts_with("Export") => Some(standard.export()?),
            name if name.starts_with("Watch") => Some(standard.watch()?),
            _ => None,
        };
        Ok(Self {
            name: name.to_owned(),
            input: method.input().name().to_owned(),
            output: method.output().name().to_owned(),
            streams: method.is_server_streaming(),
            standard: body,
        })
    }

    pub(super) fn is_standard(&self) -> bool {
        self.standard.is_some()
    }

    /// Whether its stream has no end of its own, so that draining has to end it.
    pub(super) fn is_endless(&self) -> bool {
        self.is_standard() && self.name.starts_with("Watch")
    }

    /// The associated type of a stream in the server's trait; empty for a unary RPC.
    pub(super) fn stream_type(&self) -> String {
        match self.streams {
            true => format!(
                "type {}Stream = ::souk_api::wire::Answers<pb::{}>;\n",
                self.name, self.output
            ),
            false => String::new(),
        }
    }

    /// The signature, with `arguments` before the request.
    fn signature(&self, arguments: &str) -> String {
        let Self {
            name,
            input,
            output,
            streams,
            ..
        } = self;
        let response = match streams {
            true => format!("::souk_api::wire::Answers<pb::{output}>"),
            false => format!("pb::{output}"),
        };
        format!(
            "async fn {}(&self, {arguments}request: tonic::Request<pb::{input}>) -> Result<tonic::Response<{response}>, tonic::Status>",
            snake(name)
        )
    }

    /// The method of the trait that the service has to implement.
    pub(super) fn trait_method(&self) -> String {
        let signature = self.signature("resources: &::souk_api::Resources<$MARKER$>, ");
        format!("\n/// The RPC `{}`.\n{signature};\n", self.name)
    }

    /// The method of the server that calls the service's implementation.
    pub(super) fn delegating_method(&self) -> String {
        let signature = self.signature("");
        format!(
            "{signature} {{ self.domain.{}(&self.resources, request).await }}\n",
            snake(&self.name)
        )
    }

    /// The method of the server with the standard body.
    pub(super) fn standard_method(&self) -> String {
        let signature = self.signature("");
        let body = self.standard.as_deref().unwrap_or_default();
        format!("{signature} {{\nuse ::souk_api::generated::*;\n{body}\n}}\n")
            .replace("$OUTPUT$", &self.output)
    }
}

/// Writes the bodies of standard RPCs.
struct StandardMethod<'a> {
    method: &'a MethodDescriptor,
    message: &'a MessageDescriptor,
}

impl StandardMethod<'_> {
    /// Refuses a request with other fields than these: the generated code wouldn't read them.
    fn check_request(&self, names: &[&str]) -> Result<()> {
        let input = self.method.input();
        match input.fields().find(|field| !names.contains(&field.name())) {
            Some(field) => Err(format!(
                "{}: nothing reads it; write {} by hand, which its build script has to name",
                field.full_name(),
                self.method.name()
            )
            .into()),
            None => Ok(()),
        }
    }

    /// The field of a message that holds the resource, or a list of resources.
    fn resource_field(&self, message: &MessageDescriptor, is_list: bool) -> Result<String> {
        first_field(message, &Kind::Message(self.message.clone()), is_list)
    }

    /// The field of the request that holds the id, or the list of ids: the first that can.
    fn id_field(&self, is_list: bool) -> Result<String> {
        first_field(&self.method.input(), &Kind::String, is_list)
    }

    fn create(&self) -> Result<String> {
        let given = self.resource_field(&self.method.input(), false)?;
        let returned = self.resource_field(&self.method.output(), false)?;
        let path = unescaped(&given);
        self.check_request(&[path, "request_id", "validate_only"])?;
        Ok(format!(
            "let (mut request, mut violations) = received(request);
            let id = request_id(&request.request_id, &request);
            let record = one::<$MARKER$>(request.{given}.take(), {path:?}, &self.domain, &mut violations);
            let record = checked(record, violations)?;
            let written = self.resources.create(record, id, request.validate_only).await?;
            Ok(tonic::Response::new(pb::$OUTPUT$ {{
                {returned}: Some(to_wire::<$MARKER$>(written.value)),
                sequence: written.sequence,
            }}))"
        ))
    }

    fn batch_create(&self) -> Result<String> {
        let given = self.resource_field(&self.method.input(), true)?;
        let returned = self.resource_field(&self.method.output(), true)?;
        let path = unescaped(&given);
        self.check_request(&[path, "request_id", "omit_resources"])?;
        Ok(format!(
            "let (mut request, mut violations) = received(request);
            let id = request_id(&request.request_id, &request);
            let records = batch::<$MARKER$>(std::mem::take(&mut request.{given}), {path:?}, &self.domain, &mut violations);
            let records = checked(Some(records), violations)?;
            let written = self.resources.create_batch(records, id, request.omit_resources).await?;
            Ok(tonic::Response::new(pb::$OUTPUT$ {{
                {returned}: all_to_wire::<$MARKER$>(written.value),
                sequence: written.sequence,
            }}))"
        ))
    }

    fn get(&self) -> Result<String> {
        let id = self.id_field(false)?;
        self.check_request(&[unescaped(&id), "min_sequence"])?;
        let returned = self.resource_field(&self.method.output(), false)?;
        Ok(format!(
            "let request = valid(request)?;
            let read = self.resources.get(&request.{id}, request.min_sequence).await?;
            Ok(tonic::Response::new(pb::$OUTPUT$ {{
                {returned}: Some(to_wire::<$MARKER$>(read.value)),
                sequence: read.sequence,
            }}))"
        ))
    }

    fn batch_get(&self) -> Result<String> {
        let ids = self.id_field(true)?;
        self.check_request(&[unescaped(&ids), "min_sequence"])?;
        let returned = self.resource_field(&self.method.output(), true)?;
        Ok(format!(
            "let request = valid(request)?;
            let read = self.resources.get_batch(&request.{ids}, request.min_sequence).await?;
            Ok(tonic::Response::new(pb::$OUTPUT$ {{
                {returned}: all_to_wire::<$MARKER$>(read.value.found),
                missing_ids: read.value.missing,
                sequence: read.sequence,
            }}))"
        ))
    }

    fn update(&self, item: &str) -> Result<String> {
        let given = self.resource_field(&self.method.input(), false)?;
        // `CheckedUpdate::read` puts violations under the path of this field.
        self.check_request(&[&snake(item), "update_mask", "etag"])?;
        let returned = self.resource_field(&self.method.output(), false)?;
        Ok(format!(
            "let (request, violations) = received(request);
            let mask = request.update_mask.as_ref();
            let change = CheckedUpdate::<$MARKER$>::read(request.{given}, mask, &request.etag, violations)?;
            let written = self
                .resources
                .update(change.id(), change.etag(), |record| change.apply(record, &self.domain))
                .await?;
            Ok(tonic::Response::new(pb::$OUTPUT$ {{
                {returned}: Some(to_wire::<$MARKER$>(written.value)),
                sequence: written.sequence,
            }}))"
        ))
    }

    fn delete(&self) -> Result<String> {
        let id = self.id_field(false)?;
        self.check_request(&[unescaped(&id), "etag"])?;
        Ok(format!(
            "let request = valid(request)?;
            let etag = etag(&request.etag, \"\");
            let written = self.resources.delete(&request.{id}, etag).await?;
            Ok(tonic::Response::new(pb::$OUTPUT$ {{ sequence: written.sequence }}))"
        ))
    }

    /// `None` without the option [`LIST`], which says what is listed.
    fn list(&self) -> Result<Option<String>> {
        let Some(list) = option(&self.method.options(), LIST)? else {
            return Ok(None);
        };
        let by = texts(&list, "by");
        let mut read = vec!["page_size", "page_token", "min_sequence"];
        read.extend(by.iter().map(String::as_str));
        self.check_request(&read)?;
        let returned = self.resource_field(&self.method.output(), true)?;
        let prefix: String = by
            .iter()
            .map(|field| format!("Value::from(request.{}), ", snake_identifier(field)))
            .collect();
        let direction = match flag(&list, "descending") {
            true => "Backward",
            false => "Forward",
        };
        Ok(Some(format!(
            "let request = valid(request)?;
            let list = ListRequest {{
                index: {:?},
                prefix: &[{prefix}],
                direction: Direction::{direction},
                page_size: request.page_size,
                page_token: &request.page_token,
                min_sequence: request.min_sequence,
            }};
            let page = self.resources.list_by(list).await?;
            Ok(tonic::Response::new(pb::$OUTPUT$ {{
                {returned}: all_to_wire::<$MARKER$>(page.items),
                next_page_token: page.next_page_token,
                sequence: page.sequence,
            }}))",
            text(&list, "index")
        )))
    }

    fn search(&self) -> Result<String> {
        self.check_request(&["search"])?;
        let hit = self.element("hits")?;
        let resource = self.resource_field(&hit, false)?;
        let hit_type = hit.name();
        Ok(format!(
            "let found = self.resources.search(request.into_inner().search, \"search\").await?;
            let hit = |hit: FoundHit<pb::$MESSAGE$>| pb::{hit_type} {{
                {resource}: Some(found_to_wire::<$MARKER$>(hit.resource, hit.id)),
                score: hit.score,
                sort_values: hit.sort_values,
                highlights: hit.highlights,
                inner_hits: hit.inner_hits,
            }};
            Ok(tonic::Response::new(pb::$OUTPUT$ {{
                hits: found.hits.into_iter().map(hit).collect(),
                next_page_token: found.next_page_token,
                total: found.total,
                aggregations: found.aggregations,
                sequence: found.sequence,
                profile: found.profile,
            }}))"
        ))
    }

    fn export(&self) -> Result<String> {
        self.check_request(&[
            "slice_count",
            "slice",
            "snapshot_token",
            "resume_token",
            "min_sequence",
        ])?;
        let returned = self.resource_field(&self.method.output(), true)?;
        Ok(format!(
            "let request = valid(request)?;
            let blocks = self
                .resources
                .export(ExportRequest {{
                    slice_count: request.slice_count,
                    slice: request.slice,
                    snapshot_token: request.snapshot_token,
                    resume_token: request.resume_token,
                    min_sequence: request.min_sequence,
                }})
                .await?;
            Ok(tonic::Response::new(answers(blocks, |block| pb::$OUTPUT$ {{
                {returned}: all_to_wire::<$MARKER$>(block.items),
                resume_token: block.resume_token,
                snapshot_token: block.snapshot_token,
                sequence: block.sequence,
            }})))"
        ))
    }

    fn watch(&self) -> Result<String> {
        self.check_request(&["after_sequence"])?;
        let change = self.element("changes")?;
        let resource = self.resource_field(&change, false)?;
        let change_type = change.name();
        Ok(format!(
            "let events = self.resources.watch(valid(request)?.after_sequence).await?;
            let change = |change: ResourceChange<pb::$MESSAGE$>| pb::{change_type} {{
                kind: change_kind(change.kind),
                {resource}: Some(found_to_wire::<$MARKER$>(change.stored, change.id)),
            }};
            let answer = move |event: WatchEvent<ResourceChange<pb::$MESSAGE$>>| pb::$OUTPUT$ {{
                sequence: event.sequence,
                commit_time: Some(time_to_wire(event.commit_time)),
                changes: event.changes.into_iter().map(change).collect(),
            }};
            Ok(tonic::Response::new(endless_answers(events, self.draining.clone(), answer)))"
        ))
    }

    /// The message type of a repeated field of the response.
    fn element(&self, list: &str) -> Result<MessageDescriptor> {
        let output = self.method.output();
        let field = output.get_field_by_name(list);
        let kind = field.map(|field| field.kind());
        let message = kind.as_ref().and_then(|kind| kind.as_message().cloned());
        message.ok_or_else(|| format!("{} has no {list}", output.full_name()).into())
    }
}

/// The first field of a type, repeated or not, as an identifier.
fn first_field(message: &MessageDescriptor, kind: &Kind, is_list: bool) -> Result<String> {
    let mut fields = message.fields();
    let found = fields.find(|field| field.kind() == *kind && field.is_list() == is_list);
    let found = found.ok_or_else(|| {
        let repeated = if is_list { "repeated " } else { "" };
        format!("{} has no field of type {repeated}{kind:?}", message.full_name())
    })?;
    Ok(snake_identifier(found.name()))
}
