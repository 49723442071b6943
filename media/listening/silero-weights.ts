/**
 * Reads the weights of the Silero voice detector (v5) from its ONNX file, parsing only the protobuf messages on the
 * way. The model is an `If` on the sample rate; its `then_branch` is for 16 kHz.
 */

/** Field numbers of onnx.proto. */
const MODEL_GRAPH = 7;
const GRAPH_NODE = 1;
const NODE_ATTRIBUTE = 5;
const ATTRIBUTE_NAME = 1;
const ATTRIBUTE_TENSOR = 5;
const ATTRIBUTE_GRAPH = 6;
const TENSOR_NAME = 8;
const TENSOR_RAW_DATA = 9;

export class SileroWeights {
  readonly #byName = new Map<string, Float32Array>();

  /** @throws RangeError if the file is damaged */
  constructor(onnx: Uint8Array) {
    for (const attribute of messages(onnx, MODEL_GRAPH, GRAPH_NODE, NODE_ATTRIBUTE)) {
      if (text(attribute, ATTRIBUTE_NAME) !== 'then_branch') continue;
      const tensors = messages(attribute, ATTRIBUTE_GRAPH, GRAPH_NODE, NODE_ATTRIBUTE, ATTRIBUTE_TENSOR);
      for (const tensor of tensors) {
        const [raw = new Uint8Array()] = messages(tensor, TENSOR_RAW_DATA);
        this.#byName.set(text(tensor, TENSOR_NAME), floatsOf(raw));
      }
    }
  }

  /** @throws RangeError if the file has no such weights */
  take(name: string, length: number): Float32Array {
    const weights = this.#byName.get(name);
    if (weights?.length !== length) throw new RangeError(`the model has no ${length} weights named ${name}`);
    return weights;
  }
}

/** All messages at a path of field numbers. */
function messages(message: Uint8Array, ...path: number[]): Uint8Array[] {
  return path.reduce<Uint8Array[]>((found, field) => found.flatMap((parent) => fieldsOf(parent, field)), [message]);
}

function text(message: Uint8Array, field: number): string {
  return Buffer.concat(fieldsOf(message, field)).toString();
}

/** Copies, because the bytes may be unaligned. */
function floatsOf(raw: Uint8Array): Float32Array {
  return new Float32Array(Uint8Array.from(raw.subarray(0, raw.length - (raw.length % 4))).buffer);
}

/** The length-delimited values of a field. */
function fieldsOf(message: Uint8Array, wanted: number): Uint8Array[] {
  const found: Uint8Array[] = [];
  let at = 0;
  const varint = () => {
    for (let value = 0, scale = 1; at < message.length; scale *= 128) {
      const byte = message[at++]!;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
    throw new RangeError('the model file ends too early');
  };
  while (at < message.length) {
    const key = varint();
    const wireType = key % 8;
    if (wireType === 0) varint();
    else if (wireType === 1) at += 8;
    else if (wireType === 5) at += 4;
    else if (wireType === 2) {
      const end = varint() + at;
      if (end > message.length) throw new RangeError('the model file ends too early');
      if (key >> 3 === wanted) found.push(message.subarray(at, end));
      at = end;
    } else throw new RangeError('the file is not an ONNX model');
  }
  return found;
}
