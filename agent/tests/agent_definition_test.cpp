// SPDX-License-Identifier: Apache-2.0
#include "core/definition.h"

#include <gtest/gtest.h>

#include <random>

#include "core/xml.h"

namespace tide::agent {
namespace {

tide_xrce_create_t create(uint8_t kind, uint8_t representation, std::string_view text) {
  tide_xrce_create_t body{};
  body.request.object = TIDE_XRCE_OBJECT(1, kind);
  body.object.kind = kind;
  body.object.representation = representation;
  body.object.text = {text.data(), text.size()};
  return body;
}

TEST(Xml, ReadsElementsAttributesTextAndEntities) {
  const auto root =
      parse_xml("<?xml version='1.0'?><!-- c --><a x=\"1&amp;2\" y='z'> <b>t&lt;u</b><c/><!-- d --></a> ");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->attribute("x"), "1&2");
  EXPECT_EQ(root->attribute("y"), "z");
  EXPECT_EQ(root->text_at({"b"}), "t<u");
  EXPECT_NE(root->child("c"), nullptr);
  EXPECT_EQ(root->text_at({"c", "d"}, "fallback"), "fallback");
}

TEST(Xml, RefusesWhatIsNotWellFormed) {
  for (const char *bad : {"", "<a>", "<a></b>", "</a>", "<a", "<a x></a>", "<a x=1></a>", "<a>&unknown;</a>",
                          "<a/><b/>", "text", "<!-- <a/>", "<a><!-- </a>", "< a/>", "<a x='1/>"}) {
    EXPECT_FALSE(parse_xml(bad)) << bad;
  }
}

TEST(Xml, BoundsDepthAndElements) {
  std::string deep, wide = "<r>";
  for (int level = 0; level < 17; level++) deep += "<a>";
  for (int level = 0; level < 17; level++) deep += "</a>";
  for (int element = 0; element < 256; element++) wide += "<a/>";
  EXPECT_FALSE(parse_xml(deep));
  EXPECT_TRUE(parse_xml(deep.substr(3, deep.size() - 7)));
  EXPECT_FALSE(parse_xml(wide + "</r>"));
  EXPECT_TRUE(parse_xml(wide.substr(0, wide.size() - 4) + "</r>"));
}

TEST(Xml, AnyTextIsReadOrRefused) {
  static constexpr std::string_view kPieces[] = {"<", ">",    "/", "a",    "</a>", "<a>", "=",  "\"",
                                                 "'", "&lt;", "&", "<!--", "-->",  " ",   "<?", "?>"};
  std::mt19937 random(20240607);
  for (int round = 0; round < 20000; round++) {
    std::string text;
    for (size_t piece = random() % 24; piece != 0; piece--) text += kPieces[random() % std::size(kPieces)];
    parse_xml(text);
  }
}

TEST(Definition, ReadsQosFromXml) {
  const Profiles profiles;
  Definition definition;
  const auto body =
      create(TIDE_XRCE_KIND_DATAREADER, TIDE_XRCE_BY_XML,
             "<dds><data_reader><topic><kind>NO_KEY</kind><name>rt/chatter</name><dataType>T_</dataType>"
             "<historyQos><kind>KEEP_LAST</kind><depth>7</depth></historyQos></topic><qos><reliability>"
             "<kind>RELIABLE</kind></reliability><durability><kind>TRANSIENT_LOCAL</kind></durability></qos>"
             "</data_reader></dds>");
  ASSERT_EQ(define(body, profiles, definition), TIDE_XRCE_STATUS_OK);
  EXPECT_EQ(definition.topic, (Topic{"rt/chatter", "T_"}));
  EXPECT_EQ(definition.qos, (Qos{true, true, false, 7, 0, 0}));
}

TEST(Definition, HasTheDefaultsOfDds) {
  const Profiles profiles;
  Definition writer, reader;
  ASSERT_EQ(define(create(TIDE_XRCE_KIND_DATAWRITER, TIDE_XRCE_BY_XML,
                          "<dds><data_writer><topic><name>t</name></topic></data_writer></dds>"),
                   profiles, writer),
            TIDE_XRCE_STATUS_OK);
  ASSERT_EQ(define(create(TIDE_XRCE_KIND_DATAREADER, TIDE_XRCE_BY_XML,
                          "<dds><data_reader><topic><name>t</name></topic></data_reader></dds>"),
                   profiles, reader),
            TIDE_XRCE_STATUS_OK);
  EXPECT_EQ(writer.qos, (Qos{true, true, false, 1, 0, 0}));
  EXPECT_EQ(reader.qos, (Qos{false, false, false, 1, 0, 0}));
}

TEST(Definition, ReadsQosFromBinary) {
  const Profiles profiles;
  Definition definition;
  auto body = create(TIDE_XRCE_KIND_DATAWRITER, TIDE_XRCE_BY_BINARY, {});
  body.object.topic = 0x0012;
  body.object.has_qos = true;
  body.object.qos_flags = TIDE_XRCE_QOS_KEEP_LAST | TIDE_XRCE_QOS_TRANSIENT_LOCAL;
  body.object.has_depth = true;
  body.object.depth = 5;
  ASSERT_EQ(define(body, profiles, definition), TIDE_XRCE_STATUS_OK);
  EXPECT_EQ(definition.qos, (Qos{false, true, false, 5, 0, 0}));
  body.object.qos_flags = TIDE_XRCE_QOS_RELIABLE;
  ASSERT_EQ(define(body, profiles, definition), TIDE_XRCE_STATUS_OK);
  EXPECT_EQ(definition.qos, (Qos{true, false, true, 5, 0, 0}));
}

TEST(Definition, NamesTheTopicsOfServices) {
  const Profiles profiles;
  Definition definition;
  ASSERT_EQ(
      define(create(TIDE_XRCE_KIND_REQUESTER, TIDE_XRCE_BY_XML,
                    "<dds><requester profile_name='p' service_name='add' request_type='Q' reply_type='R'/></dds>"),
             profiles, definition),
      TIDE_XRCE_STATUS_OK);
  EXPECT_EQ(definition.service, (Service{{"add_Request", "Q"}, {"add_Reply", "R"}}));
  ASSERT_EQ(
      define(create(TIDE_XRCE_KIND_REPLIER, TIDE_XRCE_BY_XML,
                    "<dds><replier service_name='add' request_type='Q' reply_type='R'><request_topic_name>rq/addRequest"
                    "</request_topic_name><reply_topic_name>rr/addReply</reply_topic_name></replier></dds>"),
             profiles, definition),
      TIDE_XRCE_STATUS_OK);
  EXPECT_EQ(definition.service, (Service{{"rq/addRequest", "Q"}, {"rr/addReply", "R"}}));
}

TEST(Definition, FindsReferences) {
  Profiles profiles;
  EXPECT_FALSE(profiles.add("<profiles>"));
  ASSERT_TRUE(
      profiles.add("<dds><profiles><topic profile_name='square'><name>Square</name><dataType>Shape</dataType>"
                   "</topic></profiles></dds>"));
  Definition definition;
  EXPECT_EQ(define(create(TIDE_XRCE_KIND_TOPIC, TIDE_XRCE_BY_REFERENCE, "square"), profiles, definition),
            TIDE_XRCE_STATUS_OK);
  EXPECT_EQ(definition.topic, (Topic{"Square", "Shape"}));
  EXPECT_EQ(define(create(TIDE_XRCE_KIND_TOPIC, TIDE_XRCE_BY_REFERENCE, "circle"), profiles, definition),
            TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE);
  EXPECT_EQ(define(create(TIDE_XRCE_KIND_PARTICIPANT, TIDE_XRCE_BY_REFERENCE, "square"), profiles, definition),
            TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE);
}

TEST(Definition, RefusesWhatCannotBe) {
  const Profiles profiles;
  Definition definition;
  auto kinds_differ = create(TIDE_XRCE_KIND_TOPIC, TIDE_XRCE_BY_XML, "");
  kinds_differ.request.object = 0x0011;
  EXPECT_EQ(define(kinds_differ, profiles, definition), TIDE_XRCE_STATUS_ERR_INVALID_DATA);
  auto domain = create(TIDE_XRCE_KIND_PARTICIPANT, TIDE_XRCE_BY_BINARY, {});
  domain.object.domain = 233;
  EXPECT_EQ(define(domain, profiles, definition), TIDE_XRCE_STATUS_ERR_INVALID_DATA);
  domain.object.domain = -1;
  EXPECT_EQ(define(domain, profiles, definition), TIDE_XRCE_STATUS_ERR_INVALID_DATA);
  EXPECT_EQ(define(create(TIDE_XRCE_KIND_TOPIC, TIDE_XRCE_BY_XML, "<dds><nonsense/></dds>"), profiles, definition),
            TIDE_XRCE_STATUS_ERR_DDS);
  EXPECT_EQ(define(create(TIDE_XRCE_KIND_TOPIC, TIDE_XRCE_BY_XML, "<dds><topic><name>t</name></topic></dds>"), profiles,
                   definition),
            TIDE_XRCE_STATUS_ERR_DDS);
  const std::string name(256, 'n');
  const std::string xml = "<dds><topic><name>" + name + "</name><dataType>T</dataType></topic></dds>";
  EXPECT_EQ(define(create(TIDE_XRCE_KIND_TOPIC, TIDE_XRCE_BY_XML, xml), profiles, definition),
            TIDE_XRCE_STATUS_ERR_DDS);
  EXPECT_EQ(define(create(9, TIDE_XRCE_BY_XML, ""), profiles, definition), TIDE_XRCE_STATUS_ERR_INVALID_DATA);
  EXPECT_EQ(define(create(TIDE_XRCE_KIND_TOPIC, 7, ""), profiles, definition), TIDE_XRCE_STATUS_ERR_INVALID_DATA);
}

}  // namespace
}  // namespace tide::agent
