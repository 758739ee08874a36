// SPDX-License-Identifier: Apache-2.0
#include "analysis/python/json_of.h"

#include <stdexcept>
#include <utility>

namespace nb = nanobind;

namespace tide::analysis {
namespace {

constexpr int deepest = 32;

// What is wrong with a value; the place is put in front of it on the way out.
class Unfit : public std::exception {
 public:
  explicit Unfit(std::string what) : what_(std::move(what)) {}
  void inside(const std::string &step) { place_ = step + (place_.empty() || place_[0] == '[' ? "" : ".") + place_; }
  std::string text() const { return (place_.empty() ? "system" : place_) + ": " + what_; }

 private:
  std::string place_;
  std::string what_;
};

std::string text_of(nb::handle value) {
  Py_ssize_t length = 0;
  const char *text = PyUnicode_AsUTF8AndSize(value.ptr(), &length);
  if (text != nullptr) return {text, static_cast<size_t>(length)};
  PyErr_Clear();
  throw Unfit("a string is no text");
}

Json converted(nb::handle value, int depth);

Json inside(const std::string &step, nb::handle value, int depth) {
  try {
    return converted(value, depth + 1);
  } catch (Unfit &error) {
    error.inside(step);
    throw;
  }
}

int64_t number(nb::handle value) {
  int overflow = 0;
  const long long result = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow != 0) throw Unfit("the number is too large");
  return result;
}

Json converted(nb::handle value, int depth) {
  if (depth > deepest) throw Unfit("nested too deeply");
  if (value.is_none()) return {nullptr};
  if (PyBool_Check(value.ptr())) return {value.ptr() == Py_True};
  if (PyLong_Check(value.ptr())) return {number(value)};
  if (PyFloat_Check(value.ptr())) throw Unfit("numbers must be integers");
  if (PyUnicode_Check(value.ptr())) return {text_of(value)};
  if (nb::isinstance<nb::dict>(value)) {
    JsonObject object;
    for (const auto &[name, member] : nb::borrow<nb::dict>(value)) {
      if (!PyUnicode_Check(name.ptr())) throw Unfit("a name must be a string");
      std::string text = text_of(name);
      Json inner = inside(text, member, depth);
      object.emplace(std::move(text), std::move(inner));
    }
    return {std::move(object)};
  }
  if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) {
    JsonArray array;
    for (const nb::handle member : nb::borrow<nb::sequence>(value)) {
      array.push_back(inside("[" + std::to_string(array.size()) + "]", member, depth));
    }
    return {std::move(array)};
  }
  throw Unfit(std::string("a ") + nb::borrow<nb::str>(value.type().attr("__name__")).c_str() +
              " is nothing that JSON knows");
}

}  // namespace

Json json_of(nb::handle value) {
  try {
    return converted(value, 0);
  } catch (const Unfit &error) {
    throw std::invalid_argument(error.text());
  }
}

}  // namespace tide::analysis
