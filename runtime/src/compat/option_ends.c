/* SPDX-License-Identifier: Apache-2.0 */
/* What few programs do with options and contexts. */
#include "internal.h"
#include "rcl/subscription.h"

rcl_ret_t rcl_init_options_copy(const rcl_init_options_t *src, rcl_init_options_t *dst) {
  if (src == NULL || !src->initialized || dst == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (dst->initialized) return tide_compat_result(TIDE_ERROR_EXISTS);
  *dst = *src;
  return RCL_RET_OK;
}

rcl_ret_t rcl_node_options_copy(const rcl_node_options_t *options, rcl_node_options_t *options_out) {
  if (options == NULL || options_out == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  *options_out = *options;
  return RCL_RET_OK;
}

rcl_ret_t rcl_node_options_fini(rcl_node_options_t *options) {
  return options == NULL ? tide_compat_result(TIDE_ERROR_ARGUMENT) : RCL_RET_OK;
}

rcl_ret_t rcl_subscription_options_fini(rcl_subscription_options_t *options) {
  return options == NULL ? tide_compat_result(TIDE_ERROR_ARGUMENT) : RCL_RET_OK;
}

rcl_ret_t rcl_context_fini(rcl_context_t *context) {
  return context == NULL || rcl_context_is_valid(context) ? tide_compat_result(TIDE_ERROR_ARGUMENT) : RCL_RET_OK;
}

rcl_ret_t rcl_context_get_domain_id(rcl_context_t *context, size_t *domain_id) {
  if (!rcl_context_is_valid(context) || domain_id == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  *domain_id = context->impl->options.domain_id;
  return RCL_RET_OK;
}
