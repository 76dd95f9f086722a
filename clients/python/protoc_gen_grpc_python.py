"""A buf plugin that runs grpcio-tools: it generates messages, their type stubs (.pyi), and gRPC stubs.

grpcio-tools brings a protoc with these generators built in, which buf can't call as plugins. This passes buf's request to that
protoc, and the generated files back.
"""

import pathlib
import sys
import tempfile

import grpc_tools.protoc
from google.protobuf import descriptor_pb2
from google.protobuf.compiler import plugin_pb2


def main() -> None:
    request = plugin_pb2.CodeGeneratorRequest.FromString(sys.stdin.buffer.read())
    response = plugin_pb2.CodeGeneratorResponse(
        supported_features=plugin_pb2.CodeGeneratorResponse.FEATURE_PROTO3_OPTIONAL
    )
    # The well-known types come with protobuf itself.
    files = [name for name in request.file_to_generate if not name.startswith("google/protobuf/")]
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out")
        out.mkdir()
        descriptors = pathlib.Path(folder, "descriptors.binpb")
        descriptor_set = descriptor_pb2.FileDescriptorSet(file=request.proto_file)
        descriptors.write_bytes(descriptor_set.SerializeToString())
        options = [f"--{kind}_out={out}" for kind in ("python", "pyi", "grpc_python")]
        code = grpc_tools.protoc.main(["protoc", f"--descriptor_set_in={descriptors}", *options, *files])
        if code != 0:
            response.error = f"protoc ended with {code}"
        for path in sorted(out.rglob("*.py*")):
            response.file.add(name=str(path.relative_to(out)), content=path.read_text())
    sys.stdout.buffer.write(response.SerializeToString())


if __name__ == "__main__":
    main()
