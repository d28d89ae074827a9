/**
 * Validation of data from other processes by JSON Schema, from which their types are derived.
 * Unknown fields are removed, not refused: a newer process may send them.
 */
import { Ajv, type Options, type ValidateFunction } from 'ajv'

const validation: Options = {
  removeAdditional: true,
  discriminator: true,
  allowUnionTypes: true,
  // The schemas are our own, so they need no validation, which takes 17 ms at each start. Unknown
  // keywords still throw.
  meta: false,
  validateSchema: false,
  // Formats are checked where user input enters, in the routes.
  validateFormats: false,
}
const ajv = new Ajv(validation)

/** Compiles a type guard for `T`, the schema's own type: `checkFor<FromSchema<…>>(schema)`. */
export function checkFor<T>(schema: object): ValidateFunction<T> {
  return ajv.compile<T>(schema)
}
