/**
 * Writes ONNX models of a few kilobytes: the subset of the protobuf format (onnx.proto, version 8) for graphs of a few
 * nodes with weights and metadata.
 */
export interface OnnxModel {
  inputs: readonly OnnxValue[];
  outputs: readonly OnnxValue[];
  nodes: readonly OnnxNode[];
  weights: readonly OnnxTensor[];
  /** Metadata that identifies the model to sherpa-onnx. */
  metadata: Readonly<Record<string, string | number>>;
}

export interface OnnxValue {
  name: string;
  type: 'float' | 'int64' | 'int32';
  /** A string is a free dimension. */
  shape: readonly (number | string)[];
}

export interface OnnxNode {
  operator: string;
  inputs: readonly string[];
  outputs: readonly string[];
  attributes?: Readonly<Record<string, number | readonly number[]>>;
}

export type OnnxTensor = { name: string; shape: readonly number[] } & (
  | { floats: readonly number[] }
  | { integers: readonly number[] }
);

export function encodeOnnx({ inputs, outputs, nodes, weights, metadata }: OnnxModel): Buffer {
  const graph = Buffer.concat([
    ...nodes.map((node, index) => message(1, encodeNode(node, index))),
    text(2, 'graph'),
    ...weights.map((tensor) => message(5, encodeTensor(tensor))),
    ...inputs.map((value) => message(11, encodeValue(value))),
    ...outputs.map((value) => message(12, encodeValue(value))),
  ]);
  return Buffer.concat([
    integer(1, 8),
    message(7, graph),
    message(8, Buffer.concat([text(1, ''), integer(2, 13)])),
    ...Object.entries(metadata).map(([key, value]) =>
      message(14, Buffer.concat([text(1, key), text(2, String(value))])),
    ),
  ]);
}

const ELEMENT_TYPES = { float: 1, int32: 6, int64: 7 } as const;
const ATTRIBUTE_INTEGER = 2;
const ATTRIBUTE_INTEGERS = 7;

function encodeNode({ operator, inputs, outputs, attributes = {} }: OnnxNode, index: number): Buffer {
  return Buffer.concat([
    ...inputs.map((name) => text(1, name)),
    ...outputs.map((name) => text(2, name)),
    text(3, `${operator}-${index}`),
    text(4, operator),
    ...Object.entries(attributes).map(([name, value]) => message(5, encodeAttribute(name, value))),
  ]);
}

function encodeAttribute(name: string, value: number | readonly number[]): Buffer {
  if (typeof value === 'number') {
    return Buffer.concat([text(1, name), integer(3, value), integer(20, ATTRIBUTE_INTEGER)]);
  }
  return Buffer.concat([text(1, name), ...value.map((item) => integer(8, item)), integer(20, ATTRIBUTE_INTEGERS)]);
}

function encodeTensor(tensor: OnnxTensor): Buffer {
  const isFloat = 'floats' in tensor;
  const data = isFloat ? new Float32Array(tensor.floats) : new BigInt64Array(tensor.integers.map(BigInt));
  return Buffer.concat([
    ...tensor.shape.map((size) => integer(1, size)),
    integer(2, isFloat ? ELEMENT_TYPES.float : ELEMENT_TYPES.int64),
    text(8, tensor.name),
    message(9, Buffer.from(data.buffer)),
  ]);
}

function encodeValue({ name, type, shape }: OnnxValue): Buffer {
  const dimensions = shape.map((size) => message(1, typeof size === 'number' ? integer(1, size) : text(2, size)));
  const tensorType = Buffer.concat([integer(1, ELEMENT_TYPES[type]), message(2, Buffer.concat(dimensions))]);
  return Buffer.concat([text(1, name), message(2, message(1, tensorType))]);
}

function integer(field: number, value: number): Buffer {
  return Buffer.concat([varint(BigInt(field << 3)), varint(BigInt.asUintN(64, BigInt(value)))]);
}

function text(field: number, value: string): Buffer {
  return message(field, Buffer.from(value));
}

function message(field: number, bytes: Buffer): Buffer {
  return Buffer.concat([varint(BigInt((field << 3) | 2)), varint(BigInt(bytes.length)), bytes]);
}

function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 0x7fn) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}

export function float(name: string, shape: OnnxValue['shape']): OnnxValue {
  return { name, type: 'float', shape };
}

export function integers(name: string, shape: OnnxValue['shape']): OnnxValue {
  return { name, type: 'int64', shape };
}
